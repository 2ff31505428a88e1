"""The page and the table say what was found, and the kept ones are made from the kept results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steersman._releases import MEANINGS
from tests.releases.__main__ import BY_CHANCE, COUNT, PAGE, ROOT, TABLE, kept, wanted_of
from tests.releases.choosing import ordered
from tests.releases.pages import Found, Heart, Row, module_of, page_of
from tests.releases.promises import PROMISES, Verdict
from tests.releases.running import HEART, passed_and_failed

YES, NO, REFUSED = Verdict.YES, Verdict.NO, Verdict.REFUSED
ALL = {each.name: YES for each in PROMISES}
TABLED = [each.name for each in PROMISES if each.is_capability]


def row(promises: Mapping[str, Verdict] = ALL, **other: Any) -> Row:
    plain: dict[str, Any] = {
        "why": "by chance",
        "heart": {"keys": Heart(3)},
        "checks": 201,
        "seconds": 29.6,
    }
    given: dict[str, Any] = {**plain, "promises": promises, **other}
    return Row(**given)


def found_with(**changed: Any) -> Found:
    rows = {
        "2.1.191": row({**ALL, "soft_pause": REFUSED}, why="the floor"),
        "2.1.300": row(),
        "2.1.99": row(),
    }
    probed = {
        name: {version: each.promises[name] for version, each in rows.items()} for name in ALL
    }
    plain: dict[str, Any] = {
        "day": "2026-11-19",
        "minutes": 31,
        "machine": "2 cores",
        "floor": "2.1.191",
        "rows": rows,
        "probed": probed,
    }
    given: dict[str, Any] = {**plain, **changed}
    return Found(**given)


def names_in(source: str) -> dict[str, Any]:
    """What a module of constants assigns."""
    names: dict[str, Any] = {}
    exec(source, names)
    return names


def lines_of(page: str, start: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(start)]


# --- The table --------------------------------------------------------------------------


def test_the_table_names_the_first_release_of_each_promise() -> None:
    table = names_in(module_of(found_with()))

    assert table["FLOOR"] == "2.1.191"
    assert table["NEWEST_TESTED"] == "2.1.300"
    assert table["TESTED"] == ("2.1.99", "2.1.191", "2.1.300")
    assert list(table["HOLDS_SINCE"]) == TABLED
    assert table["HOLDS_SINCE"]["soft_pause"] == "2.1.300"
    assert table["HOLDS_SINCE"]["deferral"] == "2.1.99"
    assert table["UNSAFE"] == ()


@pytest.mark.parametrize(
    "newer",
    [
        row({**ALL, "deferral": NO}),
        row(bad={"BROKEN": ("two-turns",)}),
        row(heart={"keys": Heart(2, failed=("test_keys.py::test_a",))}),
    ],
)
def test_a_release_that_breaks_something_is_tested_and_not_the_newest_good_one(newer: Row) -> None:
    plain = found_with()
    probed = {
        name: {**seen, "2.1.301": newer.promises[name]} for name, seen in plain.probed.items()
    }
    found = found_with(rows={**plain.rows, "2.1.301": newer}, probed=probed)

    table = names_in(module_of(found))

    assert (table["NEWEST_TESTED"], table["TESTED"][-1]) == ("2.1.300", "2.1.301")
    assert table["HOLDS_SINCE"]["deferral"] == "2.1.99"


def test_a_release_on_which_a_guard_is_broken_is_unsafe() -> None:
    plain = found_with()
    asks = {"2.1.285": NO, "2.1.290": Verdict.IN_PART, "2.1.299": YES, "2.1.301": NO}
    found = found_with(
        probed={**plain.probed, "asks_by_default": {**plain.probed["asks_by_default"], **asks}}
    )

    (first, last, what), *others = names_in(module_of(found))["UNSAFE"]

    assert (first, last) == ("2.1.285", "2.1.290")
    assert what == f"not so: {MEANINGS['asks_by_default']}"
    assert [each[:2] for each in others] == [("2.1.301", "2.1.301")]
    assert len(lines_of(page_of(found), "- 2.1.285 to 2.1.290: not so")) == 1


def test_a_changed_result_that_is_no_capability_is_not_in_the_table() -> None:
    plain = found_with()
    found = found_with(probed={**plain.probed, "own_mode_asks": {"2.1.300": NO}})

    assert module_of(found) == module_of(plain)


def test_if_no_release_keeps_everything_nothing_is_written() -> None:
    with pytest.raises(ValueError, match="no release keeps every promise"):
        module_of(found_with(rows={"2.1.191": row({**ALL, "lifecycle": NO})}))


# --- The page ---------------------------------------------------------------------------


def test_each_release_has_a_row_and_each_promise_a_column_and_a_test() -> None:
    page = page_of(found_with())

    (heads, *_) = lines_of(page, "| CLI | continues")
    (floor, newest) = (lines_of(page, f"| {version} | ")[0] for version in ("2.1.191", "2.1.300"))
    cells = dict(zip(heads.split(" | "), floor.split(" | "), strict=True))
    assert [cells[each.title] for each in PROMISES] == [
        "**refused**" if each.name == "soft_pause" else "yes" for each in PROMISES
    ]
    assert floor.endswith("| the floor |")
    assert newest.count("| yes ") == len(PROMISES)
    assert all(f"`tests/{each.held_by}`" in page for each in PROMISES)
    assert "Measured on 2026-11-19 by `make conform-range`, in 31 minutes on 2 cores." in page
    assert "| soft pause | 2.1.191: refused | 2.1.300: yes |" in page


def test_what_is_bad_is_named() -> None:
    bad = row(
        bad={"CHANGED": ("no-mode", "two-turns")},
        heart={"keys": Heart(2, failed=("test_keys.py::test_a",)), "revival": Heart(0, lacks="x")},
    )
    other = row(heart={"keys": Heart(3), "revival": Heart(7)})
    page = page_of(found_with(rows={"2.1.300": bad, "2.1.299": other}))

    assert "| 2.1.300 | **2 CHANGED** | 30 | **2 of 3** | - |" in page
    assert "| 2.1.299 | OK | 30 | 3 of 3 | 7 of 7 |" in page
    assert "- 2.1.300, CHANGED: `no-mode`, `two-turns`." in page
    assert "- 2.1.300, tests of keys that do not pass: `test_keys.py::test_a`." in page


def test_releases_of_which_only_the_promises_are_known_are_named_and_not_the_newest_good_one() -> (
    None
):
    plain = found_with()
    probed = {name: {**seen, "2.1.301": YES} for name, seen in plain.probed.items()}
    found = found_with(rows={**plain.rows, "2.1.301": Row("by chance", ALL)}, probed=probed)

    page = page_of(found)

    assert "Only the promises were looked at on: 2.1.301." in page
    assert len(lines_of(page, "| 2.1.301 | ")) == 1
    assert names_in(module_of(found))["NEWEST_TESTED"] == "2.1.300"


# --- The choice and the live tests --------------------------------------------------------


def test_the_ends_the_stock_cli_and_every_change_must_be_there() -> None:
    probed = {**found_with().probed, "deferral": {"2.1.191": NO, "2.1.290": NO, "2.1.291": YES}}

    wanted = wanted_of(["2.1.191", "2.1.290", "2.1.291", "2.1.328"], "2.1.325", probed, ["2.1.290"])

    assert wanted == {
        "2.1.191": "the floor",
        "2.1.328": "the newest",
        "2.1.325": "the stock CLI of the tests",
        "2.1.290": "named",
        "2.1.291": "deferral changes",
        "2.1.300": "soft pause changes",
    }


def test_the_results_of_a_topic_are_those_of_its_tests_and_their_variants() -> None:
    ran = {"test_a.py::one[x]": True, "test_a.py::one_more": False, "test_b.py::two": False}

    assert passed_and_failed(ran, ["test_a.py::one"]) == Heart(1)
    assert passed_and_failed(ran, ["test_b.py"]) == Heart(0, failed=("test_b.py::two",))
    with pytest.raises(OSError, match=r"none of these tests ran: test_c.py"):
        passed_and_failed(ran, ["test_c.py"])


def named_tests() -> list[str]:
    heart = [f"live/{test}" for topic in HEART.values() for test in topic.tests]
    return [*heart, *(each.held_by for each in PROMISES)]


def test_every_test_that_is_named_is_there() -> None:
    def is_there(test: str) -> bool:
        file, _, name = test.partition("::")
        text = Path(ROOT, "tests", file).read_text(encoding="utf-8")
        return not name or f"def {name}(" in text

    assert [test for test in named_tests() if not is_there(test)] == []
    assert {topic.needs for topic in HEART.values()} <= {"", *TABLED}


# --- What is kept -----------------------------------------------------------------------


def test_the_page_and_the_table_are_made_from_the_kept_results() -> None:
    found = kept()

    assert page_of(found) == PAGE.read_text(encoding="utf-8"), (
        "run: python -m tests.releases --write"
    )
    assert module_of(found) == TABLE.read_text(encoding="utf-8")
    assert msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n" == (
        Path(__file__).with_name("found.json").read_bytes()
    )


def test_at_least_twelve_releases_were_looked_at_and_three_of_them_by_chance() -> None:
    rows = kept().rows

    assert len(rows) >= COUNT
    assert [each.why for each in rows.values()].count("by chance") >= BY_CHANCE
    assert list(rows) == ordered(rows)


def test_the_page_says_what_was_measured_again_after_the_run() -> None:
    plain, later = page_of(found_with()), page_of(found_with(later={"keys": "2026-11-20"}))

    assert "on 2 cores. Do not" in plain
    assert "on 2 cores; `keys` again on 2026-11-20. Do not" in later
