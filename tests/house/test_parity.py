"""The parity report tells the truth, and nothing declared is missing from it."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from scripts.parity_report.claims import elsewhere_claim, field_marks, resolved_claim
from scripts.parity_report.command import CATALOGUE, PAGE, ROOT, catalogue, main, sources
from scripts.parity_report.defaults import DEFAULTS, Default
from scripts.parity_report.effects import NOTES, ONLY_SENT, SENT, SHOWN_BY
from scripts.parity_report.evidence import Evidence
from scripts.parity_report.instead import KINDS
from scripts.parity_report.left_out import SHOWN
from scripts.parity_report.left_out import shown_by as shown_by_hand
from scripts.parity_report.marks import mark_of
from scripts.parity_report.page import counts, faults, page
from scripts.parity_report.reasons import (
    ALSO_SHOWN_BY,
    ELSEWHERE,
    NOT_LIVE,
    REASONS,
    WHOLE_SECTION,
)
from scripts.parity_report.rows import Row, Section, sections, snake
from steersman.hooks import PreToolUse
from steersman.messages import Status
from steersman.messages.builtin import INPUTS
from steersman.options import Options
from steersman.options.table import TABLE, EnvVariable
from tests.house.objects import all_objects_kept

pytestmark = pytest.mark.process

STATUS = mark_of(Status)
IMPORT = "from steersman.messages import Status\n"
GOOD = Section("options", "Options", ("TypeScript",), (Row(("coffee",), reason="hosted only"),))
DECLARED = {
    "options": 73,
    "methods": 39,
    "control_requests": 41,
    "messages": 43,
    "hooks": 33,
    "session_functions": 16,
    "env": 28,
    "tools": 56,
    "errors": 17,
    "capabilities_live": 19,
    "python_all": 159,
    "python_types_not_exported": 32,
    "ts_exports": 270,
    "ts_entry_points": 2,
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return sources()


@pytest.fixture(scope="module")
def evidence(texts: dict[str, str]) -> Evidence:
    return Evidence(texts)


@pytest.fixture(scope="module")
def found(evidence: Evidence) -> list[Section]:
    with all_objects_kept():
        return sections(catalogue(), evidence)


def shown_by(text: str, mark: str = STATUS, path: str = "tests/messages/test_x.py") -> str | None:
    test = Evidence({path: text}).best([mark])
    return None if test is None else test.name


# --- The report of this checkout -------------------------------------------------------


def test_what_is_declared_is_here_or_says_why_not(found: list[Section]) -> None:
    assert [line for line in faults(found) if line.endswith("nor explained")] == []


def test_nothing_is_called_present_that_no_test_exercises(found: list[Section]) -> None:
    assert [line for line in faults(found) if "no test exercises" in line] == []


def test_the_page_is_what_the_code_says_today(found: list[Section]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(found), "run `make parity`"


def test_the_entry_points_beside_the_main_one_are_counted_whole(found: list[Section]) -> None:
    (section,) = (each for each in found if each.key == "ts_entry_points")
    counted = {each["path"]: each["count"] for each in catalogue()["ts_entry_points"]}
    more = {row.names[0].split()[1]: row for row in section.rows if row.names[0].endswith("names")}

    assert counted == {"./browser": 12, "./bridge": 15}
    assert sum(counted.values()) == len(section.rows) - len(counted) + sum(map(int, more))
    assert {row.status for row in section.rows} == {"not"}


def test_every_declared_thing_has_a_row(found: list[Section]) -> None:
    names = {name for section in found for row in section.rows for name in row.names}
    declared = catalogue()

    wanted = {
        *(each["ts"] or each["py"] for each in declared["options"]),
        *(each["subtype"] for each in declared["control_requests"]),
        *(each["ts"] for each in declared["messages"] if each["ts"]),
        *(each["event"] for each in declared["hooks"]),
        *(each["input_type"] for each in declared["tools"] if each["input_type"]),
        *(each["output_type"] for each in declared["tools"] if each["output_type"]),
        *declared["python_all"],
        *(each["name"] for each in declared["ts_exports"]),
    }
    assert wanted - names == set()


# --- What it is made from --------------------------------------------------------------


def test_the_catalogue_is_whole() -> None:
    declared = catalogue()

    assert {key: len(declared[key]) for key in DECLARED} == DECLARED


def test_the_catalogue_knows_no_machine() -> None:
    text = CATALOGUE.read_text(encoding="utf-8")

    assert re.findall(r"(?<![\w.~<])/(?:work|root|home|tmp|Users)/\S*", text) == []


def test_every_reason_is_of_a_known_kind() -> None:
    given = [text for each in (WHOLE_SECTION, *REASONS.values()) for text in each.values()]

    assert [text for text in given if not text.startswith(KINDS)] == []


def test_every_reason_that_says_what_happens_instead_has_a_test(found: list[Section]) -> None:
    rows = [row for section in found for row in section.rows]
    told = [row for row in rows if row.reason.startswith(("kept as data: ", "done differently: "))]

    assert told
    assert [(row.names, row.reason) for row in told if row.test is None] == []


def test_a_reason_that_says_what_happens_needs_a_test() -> None:
    with pytest.raises(KeyError, match="no test in"):
        shown_by_hand("kept as data: in a drawer")
    assert shown_by_hand("hosted only") == ""


def test_every_test_of_a_reason_is_for_a_reason(found: list[Section]) -> None:
    reasons = {row.reason for section in found for row in section.rows if row.reason}

    assert [each for each in SHOWN if not any(text.startswith(each) for text in reasons)] == []


def test_the_page_about_moving_counts_the_names_of_the_other_sdk(found: list[Section]) -> None:
    (section,) = (each for each in found if each.key == "ts_exports")
    left = [row for row in section.rows if not row.ours]
    shown = sum(1 for row in left if row.test is not None)
    page = " ".join((ROOT / "docs/moving-from-typescript.md").read_text(encoding="utf-8").split())

    assert [row.names for row in section.rows if row.ours and row.test is None] == []
    here = len(section.rows) - len(left)
    assert f"{here} with a test, and {len(left)} that are not here, each with its reason" in page
    assert f"{shown} of these reasons with a test" in page


def test_what_is_kept_by_hand_is_about_something_declared() -> None:
    text = CATALOGUE.read_text(encoding="utf-8")
    by_hand = (ELSEWHERE, ALSO_SHOWN_BY, REASONS, NOTES, SENT, SHOWN_BY)
    tables = [table for each in by_hand for table in each.values()]

    words = {word.rpartition("/")[2] for table in tables for word in table}

    assert [word for word in sorted(words) if word not in text] == []


def test_what_is_named_instead_is_there() -> None:
    named = [each for table in ELSEWHERE.values() for each in table.values()]
    dotted = [text for each in named for text in (each.ours, each.by) if text]

    assert [text for text in dotted if resolved_claim(text) is None] == []


def test_every_test_that_is_named_by_hand_exists(evidence: Evidence) -> None:
    marks = [
        *(mark for table in ELSEWHERE.values() for each in table.values() for mark in each.marks),
        *(mark for table in ALSO_SHOWN_BY.values() for each in table.values() for mark in each),
        *(mark for table in SHOWN_BY.values() for each in table.values() for mark in each),
        *(f"test:{test}" for table in ONLY_SENT.values() for test in table),
        *(f"test:tests/{each.test}" for each in DEFAULTS),
    ]

    named = [mark for mark in marks if mark.startswith("test:")]

    assert [mark for mark in named if evidence.best([mark]) is None] == []


def test_no_reason_is_kept_for_what_is_here(found: list[Section]) -> None:
    here = {(s.key, name) for s in found for row in s.rows if row.ours for name in row.names}

    stale = [(key, word) for key, table in REASONS.items() for word in table if (key, word) in here]

    assert stale == []


def test_what_the_stock_cli_is_never_made_to_do_is_not_called_live(found: list[Section]) -> None:
    words = {word for each in NOT_LIVE.values() for word in each}
    rows = [row for section in found for row in section.rows if words.intersection(row.names)]

    assert {row.status for row in rows} == {"offline"}


def test_what_is_only_sent_is_not_called_live(found: list[Section]) -> None:
    sent = {(key, word) for key, table in SENT.items() for word in table}
    only = {
        (key, word)
        for key, table in ONLY_SENT.items()
        for words in table.values()
        for word in words
    }
    by_key = {(s.key, name): row for s in found for row in s.rows for name in row.names if name}

    assert {by_key[each].status for each in sent} == {"sent"}
    assert {by_key[each].status for each in only - sent} == {"live"}
    tests = {test for table in ONLY_SENT.values() for test in table}
    assert [e for e in sorted(only - sent) if str(by_key[e].test) in tests] == []


def test_no_test_that_reads_only_the_request_counts_for_an_effect() -> None:
    path = "tests/live/test_x.py"
    text = "def test_sent(): Options(max_turns=1)"
    plan = {"tests/_launch/test_plan.py": "def test_plan(): Options(max_turns=1)"}
    mark = "option:max_turns"

    both = Evidence({path: text, **plan})

    assert str(both.best([mark])) == f"{path}::test_sent"
    assert str(both.best([mark], not_by=[f"{path}::test_sent"])).endswith("::test_plan")
    assert Evidence({path: text}).best([mark], not_by=[f"{path}::test_sent"]) is None


def test_a_row_that_is_only_sent_says_why(found: list[Section]) -> None:
    lines = page(found).splitlines()

    (colour,) = [line for line in lines if line.startswith("| set_color |")]

    assert "sent; effect not shown: the CLI refuses it" in colour
    assert "| sent |" in colour


# --- Defaults that differ --------------------------------------------------------------


@pytest.mark.parametrize("row", [each for each in DEFAULTS if each.option], ids=lambda r: r.option)
def test_a_default_on_the_page_is_that_of_the_options(row: Default) -> None:
    assert getattr(Options(), row.option) == row.value


@pytest.mark.parametrize("row", [each for each in DEFAULTS if each.option], ids=lambda r: r.option)
def test_an_official_default_on_the_page_is_that_of_the_catalogue(row: Default) -> None:
    declared = {each["py"] or snake(each["ts"]): each["default"] for each in catalogue()["options"]}

    assert declared.get(row.option, "") == row.declared


def test_the_page_has_every_default_that_differs(found: list[Section]) -> None:
    text = page(found).partition("## Defaults that differ")[2].partition("\n## ")[0]

    assert [each.what for each in DEFAULTS if each.what not in text] == []
    assert text.count("`tests/") == len(DEFAULTS)


def test_what_is_missing_without_a_reason_is_unaccounted_for() -> None:
    declared = {**catalogue(), "options": [{"ts": "makeCoffee", "py": None}]}

    (options, *_) = sections(declared, Evidence({}))

    assert options.rows == (Row(("makeCoffee", "")),)
    assert faults([options]) == ["options: makeCoffee: neither here nor explained"]


def test_what_is_here_without_a_test_is_untested() -> None:
    declared = {**catalogue(), "options": [{"ts": "maxTurns", "py": "max_turns"}]}

    (options, *_) = sections(declared, Evidence({}))

    assert counts(options.rows) == [1, 0, 0, 0, 0, 1, 0]
    assert faults([options]) == [
        "options: maxTurns / max_turns: no test exercises `steersman.Options.max_turns`"
    ]


def test_a_stale_page_fails_the_check_and_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "parity.md"
    place.write_text("old")

    status = main(["--check", f"--page={place}"], [GOOD])

    assert (status, place.read_text()) == (1, "old")
    assert capsys.readouterr().out == "parity.md is stale: run `make parity`\n"


def test_a_page_that_was_just_written_passes_the_check(tmp_path: Path) -> None:
    place = f"--page={tmp_path / 'parity.md'}"

    assert [main([place], [GOOD]), main(["--check", place], [GOOD])] == [0, 0]


@pytest.mark.parametrize("way", [[], ["--check"]])
def test_a_fault_fails_either_way(tmp_path: Path, way: list[str]) -> None:
    place = f"--page={tmp_path / 'parity.md'}"
    bad = Section("options", "Options", ("TypeScript",), (Row(("makeCoffee",)),))
    main([place], [bad])

    assert main([*way, place], [bad]) == 1


@pytest.mark.soak_only
def test_the_order_in_which_tests_are_read_does_not_matter(
    texts: dict[str, str], found: list[Section]
) -> None:
    backwards = dict(reversed(texts.items()))

    assert page(sections(catalogue(), Evidence(backwards))) == page(found)


# --- A test names the row's own field --------------------------------------------------


def test_the_test_of_a_field_names_the_field(found: list[Section], texts: dict[str, str]) -> None:
    fields = [
        (row, str(row.ours).split("`")[1].rpartition(".")[2])
        for section in found
        for row in section.rows
        if row.test is not None and is_field(row.ours)
    ]

    unnamed = [
        f"{row.names}: {row.test}"
        for row, name in fields
        if row.test is not None and not re.search(rf"\b{name}\b", texts[row.test.path])
    ]

    assert len(fields) >= 10
    assert unnamed == []


def is_field(text: str) -> bool:
    dotted = text.split("`")[1] if text.startswith("`") else ""
    owner, _, name = dotted.rpartition(".")
    try:
        thing = resolve_name(owner) if owner else None
    except (ImportError, AttributeError):
        return False
    return isinstance(thing, type) and field_marks(thing, name) != ()


def test_the_live_test_of_a_tool_names_the_tool(
    found: list[Section], texts: dict[str, str]
) -> None:
    (tools,) = (section for section in found if section.key == "tools")
    live = [row for row in tools.rows if row.status == "live" and row.test is not None]

    assert len(live) >= 30
    assert [
        row.names
        for row in live
        if row.test is not None
        and f'"{row.names[0]}"' not in texts[row.test.path]
        and row.names[1] not in texts[row.test.path]
    ] == []


@pytest.mark.parametrize("used", ["Status().status", "Status(status='x')"])
def test_a_test_of_a_class_and_its_field_shows_the_field(used: str) -> None:
    evidence = Evidence({"tests/messages/test_x.py": f"{IMPORT}def test_it(): {used}"})

    assert evidence.best([STATUS], names=field_marks(Status, "status")) is not None


def test_a_test_of_a_class_alone_does_not_show_its_field() -> None:
    evidence = Evidence({"tests/messages/test_x.py": f"{IMPORT}def test_it(): Status()"})

    assert evidence.best([STATUS]) is not None
    assert evidence.best([STATUS], names=field_marks(Status, "status")) is None


def test_a_test_that_is_named_by_hand_must_name_what_it_is_for() -> None:
    path = "tests/messages/test_x.py"
    evidence = Evidence({path: f"{IMPORT}def test_it(): ...\ndef test_other(): Status()"})

    assert evidence.best([f"test:{path}::test_it"], names=[STATUS]) is None
    assert evidence.best([f"test:{path}::test_other"], names=[STATUS]) is not None


def test_a_test_that_is_named_by_hand_is_checked_in_every_table() -> None:
    by_hand = [
        (section, key)
        for section, table in ELSEWHERE.items()
        for key, each in table.items()
        if any(mark.startswith("test:") for mark in each.marks)
    ]
    claims = [elsewhere_claim(section, key) for section, key in by_hand]

    assert by_hand
    assert [each for each in claims if each is None or not each.names] == []


def test_a_variable_that_an_option_sets_is_not_said_to_be_left_out(found: list[Section]) -> None:
    (env,) = (section for section in found if section.key == "env")
    by_name = {row.names[0]: row for row in env.rows}
    set_by = {
        spec.travels.name: option
        for option, spec in TABLE.items()
        if isinstance(spec.travels, EnvVariable)
    }

    assert {name: by_name[name].ours for name in set_by.keys() & by_name.keys()} == {
        "CLAUDE_AGENT_SDK_CLIENT_APP": "set by `steersman.Options.client_app`",
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": (
            "set by `steersman.Options.enable_file_checkpointing`"
        ),
    }


# --- What counts as exercised ----------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"{IMPORT}def test_it(): assert Status(status='x')",
        f"{IMPORT}async def test_it():\n match x:\n  case Status(): pass",
        "from steersman.messages import Status as S\ndef test_it(): S()",
        "from steersman import messages\ndef test_it(): messages.Status()",
        "import steersman.messages\ndef test_it(): steersman.messages.Status()",
        f"{IMPORT}TABLE = [Status]\n@parametrize('x', TABLE)\ndef test_it(x): ...",
        f"{IMPORT}def made(): return Status()\ndef test_it(): made()",
        f"{IMPORT}@fixture\ndef made(): return Status()\ndef test_it(made): ...",
    ],
)
def test_a_test_exercises_what_its_code_names(text: str) -> None:
    assert shown_by(text) == "test_it"


@pytest.mark.parametrize(
    "text",
    [
        f"{IMPORT}def test_it(): ...",
        f"{IMPORT}def test_it(): ...  # Status()",
        f"{IMPORT}def test_it():\n  'Status'",
        f"{IMPORT}def test_it(x: Status) -> Status: ...",
        f"{IMPORT}def test_it():\n  x: Status = y",
        f"{IMPORT}def helper(): Status()\ndef test_it(): ...",
        f"{IMPORT}@pytest.mark.skip\ndef test_it(): Status()",
        f"{IMPORT}@pytest.mark.xfail(reason='')\ndef test_it(): Status()",
        "from other import Status\ndef test_it(): Status()",
        "def test_it(): Status()",
    ],
)
def test_a_test_does_not_exercise_what_it_only_mentions(text: str) -> None:
    assert shown_by(text) is None


@pytest.mark.parametrize(
    ("code", "is_given"),
    [
        ("Options(max_turns=1)", True),
        ("agent.session(max_turns=1)", True),
        ("planned(max_turns=1)", True),
        ("Options(**{'max_turns': 1})", True),
        ("dataclasses.replace(options, max_turns=1)", True),
        ("[Options(**each) for each in [{'max_turns': 1}]]", True),
        ("[Options(**{n: v}) for n, v in [('max_turns', 1)]]", True),
        ("[Options(**each) for each in {'a': {'max_turns': 1}}.values()]", True),
        ("Options(**{'max_turns': {'a': 1}})", True),
        ("[Options(**each) for each in {'max_turns': {}, 'label': {}}.values()]", False),
        ("Options(**{'tools': ('max_turns', 'a')})", False),
        ("[print(each) for each in [{'max_turns': 1}]]", False),
        ("frame(max_turns=1)", False),
        ("SetLimit(max_turns=1)", False),
        ("asyncio.run(main, max_turns=1)", False),
        ("print({'max_turns': 1})", False),
    ],
)
def test_an_option_is_exercised_where_options_are_taken(code: str, *, is_given: bool) -> None:
    text = "import asyncio, dataclasses\ndef planned(**options): ...\ndef frame(**fields): ...\n"
    text += f"def test_it(): {code}"

    assert (shown_by(text, "option:max_turns") == "test_it") is is_given


@pytest.mark.parametrize(
    ("path", "mark", "counts_there"),
    [
        ("tests/house/test_x.py", STATUS, False),
        ("tests/samples/test_x.py", STATUS, False),
        ("tests/options/test_x.py", STATUS, True),
        ("tests/options/test_x.py", "option:model", False),
        ("tests/_launch/test_x.py", "option:model", True),
    ],
)
def test_rules_and_checks_of_values_exercise_nothing(
    path: str, mark: str, *, counts_there: bool
) -> None:
    text = f"{IMPORT}def test_it(): Options(model=Status())"

    assert (shown_by(text, mark, path) == "test_it") is counts_there


def test_a_test_that_is_named_by_hand_is_taken() -> None:
    text = f"{IMPORT}def test_first(): Status()\ndef test_named(): ..."
    path = "tests/messages/test_x.py"

    found = Evidence({path: text}).best([STATUS, f"test:{path}::test_named"])

    assert str(found) == f"{path}::test_named"


def test_a_helper_in_another_file_counts() -> None:
    evidence = Evidence(
        {
            "tests/live/staging.py": f"{IMPORT}def made(): return Status()",
            "tests/live/test_x.py": "from tests.live.staging import made\ndef test_it(): made()",
        }
    )

    assert str(evidence.best([STATUS])) == "tests/live/test_x.py::test_it"


def test_a_test_on_the_real_cli_shows_better_than_one_nearby() -> None:
    live = f"{IMPORT}pytestmark = pytest.mark.live\ndef test_live(): Status()"
    offline = {
        "tests/a/test_far.py": f"{IMPORT}def test_far(): Status()",
        "tests/b/test_near.py": f"{IMPORT}def test_near(): Status()",
    }

    found = [
        Evidence(sources).best([STATUS], near="tests/b/")
        for sources in (offline, {**offline, "tests/c/test_live.py": live})
    ]

    assert [(each.name, each.is_live) for each in found if each] == [
        ("test_near", False),
        ("test_live", True),
    ]


def test_an_option_that_is_taken_shows_better_than_one_that_is_refused() -> None:
    evidence = Evidence(
        {
            "tests/live/test_no.py": "def test_no():\n with pytest.raises(E): Options(model=5)",
            "tests/_launch/test_yes.py": "def test_yes(): Options(model='x')",
        }
    )

    assert str(evidence.best(["option:model"])) == "tests/_launch/test_yes.py::test_yes"


def test_a_test_for_each_row_of_a_table_shows_better_than_one_that_looks_at_it() -> None:
    text = f"{IMPORT}TABLE = [Status]\ndef test_size(): assert TABLE\n"
    text += "@pytest.mark.parametrize('each', TABLE)\ndef test_each(each): ..."

    assert shown_by(text) == "test_each"


@pytest.mark.parametrize(
    ("way", "is_whole"),
    [
        ("sorted(INPUTS)", True),
        ("list(INPUTS.values())", True),
        ("[each for each in INPUTS]", True),
        ("INPUTS['Bash']", False),
        ("INPUTS.get('Bash')", False),
        ("sorted([INPUTS['Bash']])", False),
    ],
)
def test_a_table_counts_where_a_test_goes_through_it(way: str, *, is_whole: bool) -> None:
    text = f"from steersman.messages.builtin import INPUTS\ndef test_it(): {way}"

    assert (shown_by(text, f"each:{mark_of(INPUTS['Bash'])}") == "test_it") is is_whole


def test_a_union_is_a_table() -> None:
    text = "from steersman.messages import Message\nALL = get_args(Message)\ndef test_it(): ALL"

    assert shown_by(text, f"each:{STATUS}") == "test_it"


def test_a_table_of_ours_does_not_make_all_of_it_live() -> None:
    text = "from steersman.messages import Message\ndef test_it(): get_args(Message)"

    path = "tests/live/test_x.py"

    assert shown_by(text, f"each:{STATUS}", path) is None


def test_two_classes_of_one_name_are_not_taken_for_each_other() -> None:
    text = "from steersman.hooks import PreToolUse\ndef test_it(): PreToolUse()"

    assert shown_by(text, mark_of(PreToolUse)) == "test_it"
    assert shown_by(text, "steersman.messages.hooks.PreToolUse") is None
