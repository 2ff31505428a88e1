"""Front matter: the YAML between two lines of `---` at the head of a Markdown file.

A head in which every line is `key: value`, with a value that is plain or in quotes, is read here.
Any other head needs PyYAML, which the extra `steersman[skills]` installs. Only `true`, `false` and
`null` have types; numbers and dates stay texts. Tags are refused, and sizes are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Protocol

from steersman._json import Json, JsonDict

FENCE = "---"
LONGEST_HEAD = 128 * 1024
MOST_VALUES = 10_000
"""Values in one head, counting those that an alias repeats."""
DEEPEST = 50

NO_YAML = "a form of YAML for which PyYAML is needed"
INSTALL = 'pip install "steersman[skills]"'

SIMPLE = re.compile(
    r"(?P<key>[A-Za-z_][\w.$-]*):"
    r"(?: +(?:'(?P<single>[^']*)'|\"(?P<double>[^\"\\]*)\""
    r"|(?P<plain>[^\s\-?:,\[\]{}#&*!|>'\"%@`].*)))?"
)
TYPED: JsonDict = {"true": True, "false": False, "null": None, "~": None, "": None}

UNQUOTED = re.compile(
    r"(?P<key>[A-Za-z_][\w.$-]*): +"
    r"(?P<value>[^\s\[\]{}#&*!|>'\"%@`].*:(?: .*|$)|\[[^\]]*\] *[^\s#].*)"
)
"""A value that YAML refuses: it contains `: `, or it has text after a list in brackets."""


class FrontMatterError(ValueError):
    """The head of a file cannot be read; the text names the line."""

    def __init__(self, line: int, problem: str, hint: str = "") -> None:
        super().__init__(f"line {line}: {problem}" + (f"; {hint}" if hint else ""))
        self.line = line
        self.problem = problem
        self.hint = hint


def split_front_matter(text: str) -> tuple[JsonDict, str]:
    """Return the fields in the head of `text`, and the text after the head.

    Without a head there are no fields. Raises `FrontMatterError`.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text
    ends = [n for n, line in enumerate(lines) if n > 0 and line.rstrip() == FENCE]
    if not ends:
        raise FrontMatterError(1, "the front matter is not closed by a line of ---")
    head = [line.rstrip() for line in lines[1 : ends[0]]]
    if sum(map(len, head)) > LONGEST_HEAD:
        raise FrontMatterError(1, f"the front matter is longer than {LONGEST_HEAD} characters")
    return _read_head(head), "\n".join(lines[ends[0] + 1 :])


def _read_head(lines: list[str]) -> JsonDict:
    try:
        return _read_lines(lines)
    except FrontMatterError as error:
        # The CLI accepts values that YAML requires in quotes, such as `description: Use it: often`.
        quoted = [_quote_value(line) for line in lines]
        if quoted == lines:
            raise
        try:
            return _read_lines(quoted)
        except FrontMatterError:
            raise error from None


def _read_lines(lines: list[str]) -> JsonDict:
    simple = _read_simple(lines)
    return _read_yaml(lines) if simple is None else simple


# --- Without PyYAML --------------------------------------------------------------------------


def _read_simple(lines: list[str]) -> JsonDict | None:
    """Read a head of `key: value` lines; `None` if a line is anything else."""
    if not all(map(_is_simple, lines)):
        return None
    found: JsonDict = {}
    for number, line in enumerate(lines, start=2):
        match = SIMPLE.fullmatch(line)
        if match is None:
            continue
        if match["key"] in found:
            raise FrontMatterError(number, f"{match['key']} is there twice")
        plain = match["plain"] or ""
        quoted = match["single"] if match["double"] is None else match["double"]
        found[match["key"]] = TYPED.get(plain.lower(), plain) if quoted is None else quoted
    return found


def _is_simple(line: str) -> bool:
    if not line or line.startswith("#"):
        return True
    match = SIMPLE.fullmatch(line)
    return match is not None and " #" not in (match["plain"] or "") and line.isprintable()


def _quote_value(line: str) -> str:
    match = UNQUOTED.fullmatch(line)
    if match is None:
        return line
    value = match["value"].replace("'", "''")
    return f"{match['key']}: '{value}'"


# --- With PyYAML -----------------------------------------------------------------------------


def _read_yaml(lines: list[str]) -> JsonDict:
    try:
        yaml = import_module("yaml")
    except ImportError:
        line = [_is_simple(line) for line in lines].index(False) + 2
        raise FrontMatterError(line, NO_YAML, INSTALL) from None
    text = "".join(f"{line}\n" for line in lines)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _EventReader(yaml.parse(text, Loader=loader)).document()
    except yaml.MarkedYAMLError as error:
        line = _line_of(error, len(lines))
        raise FrontMatterError(line, _problem_of(error)) from None
    except (yaml.YAMLError, UnicodeEncodeError):
        raise FrontMatterError(1, "a character that YAML does not allow") from None


class _Mark(Protocol):
    line: int


class _MarkedError(Protocol):
    context: str | None
    context_mark: _Mark | None
    problem: str | None
    problem_mark: _Mark | None


class _Event(Protocol):
    """An event of PyYAML; each kind has only some of these attributes."""

    anchor: str | None
    tag: str | None
    value: str
    implicit: tuple[bool, bool]
    start_mark: _Mark


def _line_of(error: _MarkedError, end: int) -> int:
    """Return the line of an error; for a text or list that never ends, the line of its start."""
    mark = error.problem_mark
    if mark is None or mark.line >= end:
        mark = error.context_mark or mark
    return 1 if mark is None else mark.line + 2


def _problem_of(error: _MarkedError) -> str:
    return ": ".join(filter(None, (error.context, error.problem))) or "no YAML"


class _EventReader:
    """Builds values from PyYAML's events, which neither run tags nor expand aliases."""

    def __init__(self, events: Iterator[_Event]) -> None:
        self._events = events
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._values = 0

    def document(self) -> JsonDict:
        if [self._next_kind(), self._next_kind()] == ["StreamStart", "StreamEnd"]:
            return {}
        top = next(self._events)
        if _kind(top) != "MappingStart":
            raise FrontMatterError(_line(top), "not `key: value`")
        found: JsonDict = self._value(top, 0)
        if [self._next_kind(), self._next_kind()] != ["DocumentEnd", "StreamEnd"]:
            raise FrontMatterError(1, "more than one YAML document")
        return found

    def _value(self, event: _Event, depth: int) -> Json:
        if _kind(event) == "Alias":
            return self._alias(event)
        before = self._values
        self._count(event, 1)
        if event.tag is not None:
            raise FrontMatterError(_line(event), f"the tag {event.tag} is not allowed")
        if depth > DEEPEST:
            raise FrontMatterError(_line(event), f"nested more than {DEEPEST} levels deep")
        value = self._content(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._values - before)
        return value

    def _content(self, event: _Event, depth: int) -> Json:
        if _kind(event) == "Scalar":
            is_plain = event.implicit[0]
            return TYPED.get(event.value.lower(), event.value) if is_plain else event.value
        if _kind(event) == "SequenceStart":
            return [self._value(each, depth + 1) for each in self._until("SequenceEnd")]
        found: JsonDict = {}
        for key in self._until("MappingEnd"):
            if _kind(key) != "Scalar":
                raise FrontMatterError(_line(key), "a key that is no text")
            if key.value in found:
                raise FrontMatterError(_line(key), f"{key.value} is there twice")
            found[key.value] = self._value(next(self._events), depth + 1)
        return found

    def _alias(self, event: _Event) -> Json:
        if event.anchor not in self._anchors:
            raise FrontMatterError(_line(event), f"the alias *{event.anchor} has no anchor")
        value, size = self._anchors[event.anchor]
        self._count(event, size)
        return value

    def _count(self, event: _Event, size: int) -> None:
        self._values += size
        if self._values > MOST_VALUES:
            raise FrontMatterError(_line(event), f"more than {MOST_VALUES} values")

    def _until(self, end: str) -> Iterator[_Event]:
        for event in self._events:
            if _kind(event) == end:
                return
            yield event

    def _next_kind(self) -> str:
        return _kind(next(self._events))


def _kind(event: _Event) -> str:
    return type(event).__name__.removesuffix("Event")


def _line(event: _Event) -> int:
    return event.start_mark.line + 2
