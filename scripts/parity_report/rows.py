"""The catalogue, row by row: what is declared, what is ours, which test shows it.

Pure but for looking at our own classes. To add a section, write its function and name it in
`SECTIONS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from scripts.parity_report import ours
from scripts.parity_report.claims import (
    Claim,
    class_claim,
    elsewhere_claim,
    event_claim,
    member_claim,
    public_claim,
    resolved_claim,
    variable_claim,
    verb_claim,
)
from scripts.parity_report.evidence import Evidence, Test
from scripts.parity_report.reasons import ALSO_SHOWN_BY, ELSEWHERE, NOT_LIVE, REASONS, WHOLE_SECTION
from steersman.options import Options

__all__ = ["Catalogue", "Row", "Section", "Status", "sections"]

Catalogue = Mapping[str, Any]
Status = Literal["live", "offline", "not", "untested", "unaccounted"]


@dataclass(frozen=True, slots=True)
class Row:
    """One declared thing."""

    names: tuple[str, ...]
    """What the official SDKs call it, in the columns of the section."""
    ours: str = ""
    test: Test | None = None
    reason: str = ""
    fields: str = ""

    @property
    def status(self) -> Status:
        """Where it stands; the last two are faults."""
        if self.ours:
            return "untested" if self.test is None else "live" if self.test.is_live else "offline"
        return "not" if self.reason else "unaccounted"


@dataclass(frozen=True, slots=True)
class Section:
    """One table."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    beside: tuple[str, ...] = ()
    """What we have and nobody else declares."""
    has_fields: bool = False


@dataclass(frozen=True, slots=True)
class _Desk:
    """Fills in a row of one section."""

    key: str
    evidence: Evidence
    near: str = ""

    def row(
        self, word: str, names: Iterable[str | None], claim: Claim | None, fields: str = ""
    ) -> Row:
        """The row of `word`, which is its name in the hand-kept tables."""
        shown = tuple(each or "" for each in names)
        claim = claim or elsewhere_claim(self.key, word)
        if claim is not None:
            marks = (*claim.marks, *ALSO_SHOWN_BY.get(self.key, {}).get(word, ()))
            may_be_live = word not in NOT_LIVE.get(self.key, ())
            test = self.evidence.best(marks, self.near, may_be_live=may_be_live)
            return Row(shown, claim.ours, test, fields=fields)
        reason = REASONS.get(self.key, {}).get(word) or WHOLE_SECTION.get(self.key, "")
        return Row(shown, reason=reason)


def sections(catalogue: Catalogue, evidence: Evidence) -> list[Section]:
    """Every table of the report."""
    made = [make(catalogue, evidence) for make in SECTIONS]
    return [_sorted(each) for each in (*made, _ts_exports(catalogue, evidence, made))]


def _sorted(section: Section) -> Section:
    def first_name(row: Row) -> tuple[str, tuple[str, ...]]:
        return next(filter(None, row.names)).casefold(), row.names

    return replace(section, rows=tuple(sorted(section.rows, key=first_name)))


def _options(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("options", evidence, "tests/_launch/")
    known = ours.option_names()
    rows: list[Row] = []
    meant: set[str] = set()
    for each in catalogue["options"]:
        name = each["py"] or _snake(each["ts"])
        meant.add(name)
        claim = member_claim(Options, name) if name in known else None
        rows.append(desk.row(each["py"] or each["ts"], (each["ts"], each["py"]), claim))
    beside = tuple(f"`{name}`" for name in sorted(known - meant))
    return Section("options", "Options", TS_AND_PYTHON, tuple(rows), beside=beside)


def _methods(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("methods", evidence, "tests/_session/")
    rows = [
        desk.row(each["py"] or each["ts"], (each["ts"], each["py"]), _method(each))
        for each in catalogue["methods"]
    ]
    return Section("methods", "Methods", TS_AND_PYTHON, tuple(rows))


def _method(each: Mapping[str, Any]) -> Claim | None:
    """What our own table says, the verb that carries it, or a method of the same name."""
    word = each["py"] or each["ts"]
    if word in ELSEWHERE["methods"]:
        return None
    verb = ours.verbs().get(each["subtype"] or "")
    if verb is not None and each["subtype"] != "initialize":
        return verb_claim(verb, each["subtype"])
    name = each["py"] or _snake(each["ts"])
    owner = next((owner for owner in ours.PEOPLE if hasattr(owner, name)), None)
    return None if owner is None else member_claim(owner, name)


def _control_requests(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("control_requests", evidence, "tests/control/")
    verbs, asked = ours.verbs(), ours.inbound()
    rows: list[Row] = []
    for each in catalogue["control_requests"]:
        word = each["subtype"]
        cls = verbs.get(word) or asked.get(word)
        claim = None if cls is None else verb_claim(cls, word)
        names = (word, each["direction"].replace("_", " "))
        rows.append(desk.row(word, names, claim, _fields(cls, each["fields"])))
    declared = {each["subtype"] for each in catalogue["control_requests"]}
    beside = tuple(f"`{word}`" for word in sorted(verbs.keys() - declared))
    columns, title = ("subtype", "direction"), "Control requests"
    return Section("control_requests", title, columns, tuple(rows), beside, has_fields=True)


def _messages(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("messages", evidence, "tests/messages/")
    known = ours.messages_by_kind()
    rows: list[Row] = []
    meant: set[str] = set()
    for each in catalogue["messages"]:
        kind = each["type"]
        word = f"system/{each['subtypes'][0]}" if kind == "system" else kind
        meant.add(word)
        shown = word if kind == "system" else "/".join([kind, *each["subtypes"][:1]])
        names = (each["ts"], each["py"], shown)
        fields = _fields(known.get(word), each["fields"])
        rows.append(desk.row(word, names, class_claim(known.get(word)), fields))
    beside = tuple(f"`{word}`" for word in sorted(known.keys() - meant))
    columns = (*TS_AND_PYTHON, "frame")
    return Section("messages", "Messages", columns, tuple(rows), beside, has_fields=True)


def _content_blocks(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("content_blocks", evidence, "tests/messages/")
    lists = catalogue["content_blocks"]
    python = {*lists["python_assistant"], *lists["python_user"]}
    places = {
        "block": [*lists["assistant"], *lists["user_only"], *lists["typed_by_api_sdk_only"]],
        "inside a tool result": lists["tool_result_content"],
        "stream event": lists["stream_events"],
        "delta": lists["deltas"],
    }
    known = {**ours.tagged("messages"), **ours.blocks()}
    rows = [
        desk.row(
            word,
            (word, "parsed" if place == "block" and word in python else "", place),
            class_claim(known.get(word)),
        )
        for place, words in places.items()
        for word in dict.fromkeys(words)
        if not (place == "inside a tool result" and word in places["block"])
    ]
    columns = ("type", "Python", "where")
    return Section("content_blocks", "Content blocks and stream events", columns, tuple(rows))


def _hooks(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("hooks", evidence, "tests/hooks/")
    known = ours.events()
    rows = [
        desk.row(
            each["event"],
            (each["event"], each["py_input_type"]),
            event_claim(known.get(each["event"])),
            _fields(known.get(each["event"]), each["input_fields"]),
        )
        for each in catalogue["hooks"]
    ]
    return Section("hooks", "Hook events", TS_AND_PYTHON, tuple(rows), has_fields=True)


def _tools(catalogue: Catalogue, evidence: Evidence) -> Section:
    rows = [
        _tool_row(each, kind, evidence)
        for each in catalogue["tools"]
        for kind in ("input", "output")
        if each["input_type"] or kind == "input"
    ]
    columns = ("tool", "TypeScript")
    return Section("tools", "Tool types", columns, tuple(rows), has_fields=True)


def _tool_row(each: Mapping[str, Any], kind: str, evidence: Evidence) -> Row:
    tool, name = each["tool"].partition(" ")[0], each[f"{kind}_type"]
    desk = _Desk("tools" if name else "untyped_tools", evidence, "tests/messages/")
    cls = _tool_class(name or "", f"{tool}{kind.title()}")
    claim = class_claim(cls)
    if claim is not None and kind == "input" and each["schema_seen_live"]:
        # A live test that goes through the tools on offer meets this one.
        claim = claim.shown_also_by(f"live {claim.marks[-1]}")
    declared = each["fields" if kind == "input" else "output_fields"] or ()
    return desk.row(name or tool, (tool, name), claim, _fields(cls, declared))


def _tool_class(*names: str) -> type | None:
    found = [each for name in names for each in ours.public().get(name, [])]
    return next((each for each in found if isinstance(each, type)), None)


def _session_functions(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("session_functions", evidence)
    rows: list[Row] = []
    for each in catalogue["session_functions"]:
        python, typescript = _functions(each["py"]), _functions(each["ts"])
        for number, name in enumerate(python or typescript):
            ts = typescript[min(number, len(typescript) - 1)] if typescript else None
            claim = public_claim(_snake(name), name)
            rows.append(desk.row(name, (ts, name if python else None), claim))
    return Section("session_functions", "Session functions", TS_AND_PYTHON, tuple(rows))


def _functions(text: str) -> list[str]:
    """The names in `a(x, y) / b`."""
    bare = re.sub(r"\([^)]*\)", "", text.replace("—", ""))
    return [each.strip().removeprefix("testing.") for each in bare.split(" / ") if each.strip()]


def _errors(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("errors", evidence, "tests/test_errors.py")
    rows = [
        desk.row(each["name"], (each["name"], each["where"]), None) for each in catalogue["errors"]
    ]
    return Section("errors", "Errors", ("error", "where"), tuple(rows))


def _env(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("env", evidence, "tests/_launch/")
    rows = [
        desk.row(name, (name, each["ts"], each["py"]), variable_claim(name))
        for each in catalogue["env"]
        for name in re.split(r" / |, ", each["name"])
    ]
    columns = ("variable", *TS_AND_PYTHON)
    return Section("env", "Environment variables", columns, tuple(rows))


def _capabilities(catalogue: Catalogue, evidence: Evidence) -> Section:
    desk = _Desk("capabilities_live", evidence)
    used = ours.texts_in_source()
    rows = [
        desk.row(name, (name,), Claim("asked for", (f"text:{name}",)) if name in used else None)
        for name in catalogue["capabilities_live"]
    ]
    return Section("capabilities_live", "Capabilities", ("capability",), tuple(rows))


def _python_names(catalogue: Catalogue, evidence: Evidence) -> Section:
    rows: list[Row] = []
    for key in ("python_all", "python_types_not_exported"):
        desk = _Desk(key, evidence, "tests/compat/")
        where = "exported" if key == "python_all" else "in types.py"
        rows += [
            desk.row(name, (name, where), resolved_claim(f"steersman.compat.{name}"))
            for name in catalogue[key]
        ]
    return Section("python_all", "Names of the Python SDK", ("name", "where"), tuple(rows))


def _ts_exports(catalogue: Catalogue, evidence: Evidence, made: Iterable[Section]) -> Section:
    """Names that stand in another table too have their answer there."""
    desk = _Desk("ts_exports", evidence)
    answered = _answered(made)
    rows: list[Row] = []
    for each in catalogue["ts_exports"]:
        name, names = each["name"], (each["name"], each["kind"])
        row = answered.get(f"{name}()") or answered.get(name)
        if row is not None:
            rows.append(Row(names, row.ours, row.test, row.reason))
        else:
            # A type that only rides along in a bigger one counts where a test names it.
            row = desk.row(name, names, _ts_claim(name))
            is_by_chance = row.status == "untested" and name not in ELSEWHERE["ts_exports"]
            rows.append(desk.row(name, names, None) if is_by_chance else row)
    title = "Names of the TypeScript SDK"
    return Section("ts_exports", title, ("name", "kind"), tuple(rows))


def _answered(made: Iterable[Section]) -> dict[str, Row]:
    """Rows by the names in them; that a name of Python's is missing answers nothing here."""
    rows = [row for section in made if section.key != "python_all" for row in section.rows]
    events = {f"{row.names[0]}HookInput": row for row in _rows_of(made, "hooks")}
    return {**{name: row for row in rows for name in row.names if name}, **events}


def _ts_claim(name: str) -> Claim | None:
    """The output of an event, or what is called the same, unless our own table says otherwise."""
    if name in ELSEWHERE["ts_exports"]:
        return None
    if name.endswith("HookSpecificOutput"):
        return class_claim(ours.outputs().get(name.removesuffix("HookSpecificOutput")))
    return public_claim(name)


def _rows_of(made: Iterable[Section], key: str) -> Iterator[Row]:
    return (row for section in made if section.key == key for row in section.rows)


TS_AND_PYTHON = ("TypeScript", "Python")

SECTIONS: tuple[Callable[[Catalogue, Evidence], Section], ...] = (
    _options,
    _methods,
    _control_requests,
    _messages,
    _content_blocks,
    _hooks,
    _tools,
    _session_functions,
    _errors,
    _env,
    _capabilities,
    _python_names,
)


def _fields(cls: type | None, declared: Iterable[str]) -> str:
    """How many of the declared fields have a name here; the others are in `raw`."""
    wanted = {each.rstrip("?") for each in declared if re.fullmatch(r"[\w-]+\??", each)}
    if cls is None or not wanted:
        return ""
    named = len(wanted & ours.field_names(cls))
    return f"all {len(wanted)}" if named == len(wanted) else f"{named} of {len(wanted)}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
