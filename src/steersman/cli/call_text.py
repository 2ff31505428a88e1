"""A tool call as text: one line, and for a permission request all that it would do."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steersman._json import JsonObject, is_array, is_mapping
from steersman._terminal import exact, one_line

MOST_LINES = 40
"""How many lines of a call are shown at first."""
LONGEST_BRIEF = 200
SUBJECTS = ("file_path", "notebook_path", "path", "pattern", "url", "query", "description", "skill")
"""Fields of an input that name what a call is about, the best first."""

Kind = Literal["plain", "added", "removed", "context"]
Read = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of what a call would do."""

    text: str
    kind: Kind = "plain"


@dataclass(frozen=True, slots=True)
class CallView:
    """What a permission request shows."""

    title: str
    lines: tuple[Line, ...]

    @property
    def hidden(self) -> int:
        """How many lines `shown` leaves out."""
        return max(0, len(self.lines) - MOST_LINES)

    def shown(self) -> tuple[Line, ...]:
        """Return the first lines, and how many there are more."""
        if not self.hidden:
            return self.lines
        more = f"... {self.hidden} more lines: press ? to see them"
        return (*self.lines[:MOST_LINES], Line(more))


def brief(name: str, given: JsonObject) -> str:
    """Return a call in one line: the tool, and what it is about."""
    command = given.get("command")
    subject = command if isinstance(command, str) else ""
    for field in SUBJECTS:
        if not subject and isinstance(given.get(field), str):
            subject = str(given[field])
    if not subject and given:
        subject = json.dumps(dict(given), ensure_ascii=False, default=str)
    text = _name(f"{name} {subject}".strip().replace("\n", " ; "))
    return text if len(text) <= LONGEST_BRIEF else f"{text[:LONGEST_BRIEF]}..."


def view(name: str, given: JsonObject, read: Read | None = None) -> CallView:
    """Return what a call would do; changes of files as the lines that they remove and add."""
    path = str(given.get("file_path") or "")
    changes = list(_changes(name, given, path, read or read_text))
    if changes:
        added = sum(line.kind == "added" for line in changes)
        removed = sum(line.kind == "removed" for line in changes)
        return CallView(f"{_name(name)} {_name(path)}   +{added} -{removed}", tuple(changes))
    command = given.get("command")
    if isinstance(command, str):
        rest = {key: value for key, value in given.items() if key != "command"}
        return CallView(_name(name), (*_plain(command), *_plain(_json(rest) if rest else "")))
    return CallView(_name(name), _plain(_json(given)))


def read_text(path: str) -> str | None:
    """Return the text of a file; None if there is none that can be shown."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def _changes(name: str, given: JsonObject, path: str, read: Read) -> Iterator[Line]:
    edits = given.get("edits")
    if name == "Write":
        yield from _difference(read(path) or "", str(given.get("content") or ""))
    elif name == "Edit":
        yield from _edit(given)
    elif name == "MultiEdit" and is_array(edits):
        for each in edits:
            if is_mapping(each):
                yield from _edit(each)


def _edit(given: JsonObject) -> Iterator[Line]:
    old, new = str(given.get("old_string") or ""), str(given.get("new_string") or "")
    yield from _difference(old, new)
    if given.get("replace_all"):
        yield Line("(everywhere in the file)", "context")


def _difference(old: str, new: str) -> Iterator[Line]:
    kinds: dict[str, Kind] = {"-": "removed", "+": "added", " ": "context"}
    found = difflib.unified_diff(old.split("\n"), new.split("\n"), n=2, lineterm="")
    for index, line in enumerate(found):
        # The first two lines are names of files.
        if index > 1 and line[:1] in kinds:
            yield Line(f"{line[:1]} {exact(line[1:])}", kinds[line[:1]])


def _name(text: str) -> str:
    return one_line(exact(text))


def _plain(text: str) -> tuple[Line, ...]:
    return tuple(Line(exact(line)) for line in text.split("\n")) if text else ()


def _json(given: JsonObject) -> str:
    return json.dumps(dict(given), indent=2, ensure_ascii=False, default=str)
