"""The rows of the report: what is declared, what is ours, which test shows it.

Pure, except that it inspects our classes. To add a section, write a function and add it to
`SECTIONS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from scripts.parity_report import ours
from scripts.parity_report.claims import (
    Claim,
    class_claim,
    elsewhere_claim,
    event_claim,
    member_claim,
    official_claim,
    public_claim,
    variable_claim,
    verb_claim,
)
from scripts.parity_report.effects import NOTES, ONLY_SENT, SENT, SHOWN_BY
from scripts.parity_report.evidence import Evidence, Test
from scripts.parity_report.left_out import shown_by
from scripts.parity_report.reasons import ALSO_SHOWN_BY, ELSEWHERE, NOT_LIVE, REASONS, WHOLE_SECTION
from steersman._json import JsonObject
from steersman.options import Options

__all__ = ["Catalogue", "Row", "Section", "Status", "sections", "snake"]

Catalogue = JsonObject
Status = Literal["live", "sent", "offline", "not", "untested", "unaccounted"]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that an official SDK declares."""

    names: tuple[str, ...]
    """The official names, in the columns of the section."""
    ours: str = ""
    test: Test | None = None
    reason: str = ""
    fields: str = ""
    note: str = ""
    """Words about what is ours."""
    sent: str = ""
    """Why no test shows the effect, if the test only shows what is sent."""

    @property
    def status(self) -> Status:
        """The status of the row. `untested` and `unaccounted` are faults."""
        if not self.ours:
            return "not" if self.reason else "unaccounted"
        if self.test is None:
            return "untested"
        if not self.test.is_live:
            return "offline"
        return "sent" if self.sent else "live"


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the report."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    beside: tuple[str, ...] = ()
    """What only steersman has."""
    has_fields: bool = False


@dataclass(frozen=True, slots=True)
class _RowBuilder:
    """Builds the rows of one section. Tests below `near` are preferred."""

    section: str
    evidence: Evidence
    near: str = ""

    def row(
        self, key: str, names: Iterable[str | None], claim: Claim | None, fields: str = ""
    ) -> Row:
        """Return a row. `key` is its name in the hand-kept tables."""
        shown = tuple(each or "" for each in names)
        claim = claim or elsewhere_claim(self.section, key)
        if claim is None:
            reason = REASONS.get(self.section, {}).get(key) or WHOLE_SECTION.get(self.section, "")
            mark = shown_by(reason)
            return Row(shown, test=self.evidence.best([mark]) if mark else None, reason=reason)
        note = NOTES.get(self.section, {}).get(key, "")
        sent = SENT.get(self.section, {}).get(key, "")
        return Row(shown, claim.ours, self._test(key, claim), "", fields, note, sent)

    def _test(self, key: str, claim: Claim) -> Test | None:
        also = ALSO_SHOWN_BY.get(self.section, {}).get(key, ())
        by_hand = SHOWN_BY.get(self.section, {}).get(key)
        marks = by_hand or (*claim.marks, *also)
        is_sent = key in SENT.get(self.section, {})
        tables = ONLY_SENT.get(self.section, {})
        return self.evidence.best(
            marks,
            self.near,
            names=claim.names or (claim.marks if by_hand else ()),
            may_be_live=key not in NOT_LIVE.get(self.section, ()),
            not_by=() if is_sent else [test for test, keys in tables.items() if key in keys],
        )


def sections(catalogue: Catalogue, evidence: Evidence) -> list[Section]:
    """Return all tables of the report."""
    made = [make(catalogue, evidence) for make in SECTIONS]
    return [_sorted(each) for each in (*made, _ts_exports(catalogue, evidence, made))]


def _sorted(section: Section) -> Section:
    def first_name(row: Row) -> tuple[str, tuple[str, ...]]:
        return next(filter(None, row.names)).casefold(), row.names

    return replace(section, rows=tuple(sorted(section.rows, key=first_name)))


def _options(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("options", evidence, "tests/_launch/")
    known = ours.option_names()
    rows: list[Row] = []
    meant: set[str] = set()
    for each in catalogue["options"]:
        name = each["py"] or snake(each["ts"])
        meant.add(name)
        claim = member_claim(Options, name) if name in known else None
        rows.append(builder.row(each["py"] or each["ts"], (each["ts"], each["py"]), claim))
    beside = tuple(f"`{name}`" for name in sorted(known - meant))
    return Section("options", "Options", TS_AND_PYTHON, tuple(rows), beside=beside)


def _methods(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("methods", evidence, "tests/_session/")
    rows = [
        builder.row(each["py"] or each["ts"], (each["ts"], each["py"]), _method(each))
        for each in catalogue["methods"]
    ]
    return Section("methods", "Methods", TS_AND_PYTHON, tuple(rows))


def _method(each: JsonObject) -> Claim | None:
    """Return the claim for a method: the verb that it sends, or a method of the same name."""
    key = each["py"] or each["ts"]
    if key in ELSEWHERE["methods"]:
        return None
    verb = ours.verbs().get(each["subtype"] or "")
    if verb is not None and each["subtype"] != "initialize":
        return verb_claim(verb, each["subtype"])
    name = each["py"] or snake(each["ts"])
    owner = next((owner for owner in ours.METHOD_OWNERS if hasattr(owner, name)), None)
    return None if owner is None else member_claim(owner, name)


def _control_requests(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("control_requests", evidence, "tests/control/")
    verbs, asked = ours.verbs(), ours.inbound()
    rows: list[Row] = []
    for each in catalogue["control_requests"]:
        key = each["subtype"]
        cls = verbs.get(key) or asked.get(key)
        claim = None if cls is None else verb_claim(cls, key)
        names = (key, each["direction"].replace("_", " "))
        rows.append(builder.row(key, names, claim, _fields(cls, each["fields"])))
    declared = {each["subtype"] for each in catalogue["control_requests"]}
    beside = tuple(f"`{key}`" for key in sorted(verbs.keys() - declared))
    columns, title = ("subtype", "direction"), "Control requests"
    return Section("control_requests", title, columns, tuple(rows), beside, has_fields=True)


def _messages(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("messages", evidence, "tests/messages/")
    known = ours.messages_by_kind()
    rows: list[Row] = []
    meant: set[str] = set()
    for each in catalogue["messages"]:
        kind = each["type"]
        key = f"system/{each['subtypes'][0]}" if kind == "system" else kind
        meant.add(key)
        shown = key if kind == "system" else "/".join([kind, *each["subtypes"][:1]])
        names = (each["ts"], each["py"], shown)
        fields = _fields(known.get(key), each["fields"])
        # Both kinds of `result` have one class; in the hand-kept tables they are two.
        rows.append(builder.row(shown, names, class_claim(known.get(key)), fields))
    beside = tuple(f"`{key}`" for key in sorted(known.keys() - meant))
    columns = (*TS_AND_PYTHON, "frame")
    return Section("messages", "Messages", columns, tuple(rows), beside, has_fields=True)


def _content_blocks(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("content_blocks", evidence, "tests/messages/")
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
        builder.row(
            key,
            (key, "parsed" if place == "block" and key in python else "", place),
            class_claim(known.get(key)),
        )
        for place, keys in places.items()
        for key in dict.fromkeys(keys)
        if not (place == "inside a tool result" and key in places["block"])
    ]
    columns = ("type", "Python", "where")
    return Section("content_blocks", "Content blocks and stream events", columns, tuple(rows))


def _hooks(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("hooks", evidence, "tests/hooks/")
    known = ours.events()
    rows = [
        builder.row(
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


def _tool_row(each: JsonObject, kind: str, evidence: Evidence) -> Row:
    tool, name = each["tool"].partition(" ")[0], each[f"{kind}_type"]
    builder = _RowBuilder("tools" if name else "untyped_tools", evidence, "tests/messages/")
    cls = _tool_class(name or "", f"{tool}{kind.title()}")
    claim = class_claim(cls)
    if claim is not None and kind == "input" and each["schema_seen_live"]:
        # This test compares the schemas of the tools that it names with their classes.
        claim = replace(
            claim, marks=(*claim.marks, f"test:{OFFERED}"), names=_names_of(tool, claim)
        )
    declared = each["fields" if kind == "input" else "output_fields"] or ()
    return builder.row(name or tool, (tool, name), claim, _fields(cls, declared))


def _names_of(tool: str, claim: Claim) -> tuple[str, ...]:
    """Return the ways to name a tool: its class, a table with it, or its name as a string."""
    return (claim.marks[0], f"text:{tool}")


def _tool_class(*names: str) -> type | None:
    found = [each for name in names for each in ours.public().get(name, [])]
    return next((each for each in found if isinstance(each, type)), None)


def _session_functions(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("session_functions", evidence)
    rows: list[Row] = []
    for each in catalogue["session_functions"]:
        python, typescript = _functions(each["py"]), _functions(each["ts"])
        for number, name in enumerate(python or typescript):
            ts = typescript[min(number, len(typescript) - 1)] if typescript else None
            claim = public_claim(snake(name), name)
            rows.append(builder.row(name, (ts, name if python else None), claim))
    return Section("session_functions", "Session functions", TS_AND_PYTHON, tuple(rows))


def _functions(text: str) -> list[str]:
    """Return the names in a text like `a(x, y) / b`."""
    bare = re.sub(r"\([^)]*\)", "", text.replace("—", ""))
    return [each.strip().removeprefix("testing.") for each in bare.split(" / ") if each.strip()]


def _errors(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("errors", evidence, "tests/test_errors.py")
    rows = [
        builder.row(each["name"], (each["name"], each["where"]), None)
        for each in catalogue["errors"]
    ]
    return Section("errors", "Errors", ("error", "where"), tuple(rows))


def _env(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("env", evidence, "tests/_launch/")
    rows = [
        builder.row(name, (name, each["ts"], each["py"]), variable_claim(name))
        for each in catalogue["env"]
        for name in re.split(r" / |, ", each["name"])
    ]
    columns = ("variable", *TS_AND_PYTHON)
    return Section("env", "Environment variables", columns, tuple(rows))


def _capabilities(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("capabilities_live", evidence)
    used = ours.texts_in_source()
    rows = [
        builder.row(name, (name,), Claim(CHECKED, (f"text:{name}",)) if name in used else None)
        for name in catalogue["capabilities_live"]
    ]
    return Section("capabilities_live", "Capabilities", ("capability",), tuple(rows))


def _python_names(catalogue: Catalogue, evidence: Evidence) -> Section:
    rows: list[Row] = []
    for section in ("python_all", "python_types_not_exported"):
        builder = _RowBuilder(section, evidence, "tests/compat/")
        is_exported = section == "python_all"
        where = "exported" if is_exported else "in types.py"
        home = "steersman.compat" if is_exported else "steersman.compat.types"
        rows += [
            builder.row(name, (name, where), official_claim(f"{home}.{name}"))
            for name in catalogue[section]
        ]
    return Section("python_all", "Names of the Python SDK", ("name", "where"), tuple(rows))


def _ts_exports(catalogue: Catalogue, evidence: Evidence, made: Iterable[Section]) -> Section:
    """Return the section of exported names. A name in another table repeats that row."""
    builder = _RowBuilder("ts_exports", evidence)
    answered = _answered(made)
    rows: list[Row] = []
    for each in catalogue["ts_exports"]:
        name, names = each["name"], (each["name"], each["kind"])
        row = answered.get(f"{name}()") or answered.get(name)
        if row is not None:
            rows.append(replace(row, names=names, fields=""))
        else:
            # A type of ours with the same name counts only if a test names it.
            row = builder.row(name, names, _ts_claim(name))
            is_by_chance = row.status == "untested" and name not in ELSEWHERE["ts_exports"]
            rows.append(builder.row(name, names, None) if is_by_chance else row)
    title = "Names of the TypeScript SDK"
    return Section("ts_exports", title, ("name", "kind"), tuple(rows))


def _ts_entry_points(catalogue: Catalogue, evidence: Evidence) -> Section:
    builder = _RowBuilder("ts_entry_points", evidence)
    rows: list[Row] = []
    for each in catalogue["ts_entry_points"]:
        names, path = each["names"], each["path"]
        rows += [builder.row(name, (f"{path}: {name}", each["about"]), None) for name in names]
        left = each["count"] - len(names)
        rows.append(builder.row(path, (f"{path}: {left} more names", each["about"]), None))
    title = "Other entry points of the TypeScript SDK"
    return Section("ts_entry_points", title, ("name", "what it is for"), tuple(rows))


def _answered(made: Iterable[Section]) -> dict[str, Row]:
    """Return rows by name, without those that only list names of the Python SDK."""
    rows = [row for section in made if section.key != "python_all" for row in section.rows]
    events = {f"{row.names[0]}HookInput": row for row in _rows_of(made, "hooks")}
    return {**{name: row for row in rows for name in row.names if name}, **events}


def _ts_claim(name: str) -> Claim | None:
    """Return the claim for an event output, or for a public name that is equal."""
    if name in ELSEWHERE["ts_exports"]:
        return None
    if name.endswith("HookSpecificOutput"):
        return class_claim(ours.outputs().get(name.removesuffix("HookSpecificOutput")))
    return public_claim(name)


def _rows_of(made: Iterable[Section], key: str) -> Iterator[Row]:
    return (row for section in made if section.key == key for row in section.rows)


OFFERED = (
    "tests/live/test_tool_types.py"
    "::test_every_tool_on_offer_has_a_class_with_the_fields_of_its_schema"
)
CHECKED = "checked before a request that needs it is sent"
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
    _ts_entry_points,
)


def _fields(cls: type | None, declared: Iterable[str]) -> str:
    """Return how many of the declared fields have a name in `cls`, as text."""
    wanted = {each.rstrip("?") for each in declared if re.fullmatch(r"[\w-]+\??", each)}
    if cls is None or not wanted:
        return ""
    named = len(wanted & ours.field_names(cls))
    return f"all {len(wanted)}" if named == len(wanted) else f"{named} of {len(wanted)}"


def snake(name: str) -> str:
    """Return a TypeScript name as Python would write it."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
