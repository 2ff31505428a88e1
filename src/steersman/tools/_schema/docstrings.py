"""A docstring, split into the description and the descriptions of the parameters.

Reads Google, NumPy and Sphinx sections. Knows nothing of types.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

PARAMETER_SECTIONS = frozenset(
    {"args", "arguments", "parameters", "other parameters", "attributes", "keyword args"}
)
LEFT_OUT_SECTIONS = frozenset({"returns", "return", "yields", "raises", "receives", "warns"})
KNOWN_SECTIONS = PARAMETER_SECTIONS | LEFT_OUT_SECTIONS

GOOGLE_HEADER = re.compile(r"^(?P<title>[A-Za-z ]+):\s*$")
GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)$")
NUMPY_UNDERLINE = re.compile(r"^-{3,}\s*$")
NUMPY_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
SPHINX_FIELD = re.compile(r"^:(?P<kind>\w+)\s*(?P<about>[^:]*):\s*(?P<text>.*)$")
SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "ivar"})


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring without its sections, and the descriptions of its parameters."""

    description: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def read_docstring(text: str | None) -> Docstring:
    """Split `text`; an empty or missing docstring gives an empty description."""
    prose: list[str] = []
    parameters: dict[str, str] = {}
    for title, lines in _sections(inspect.cleandoc(text or "").splitlines()):
        if title == "":
            prose += lines
        elif title == "numpy":
            parameters |= _numpy_entries(lines)
        elif title == "sphinx":
            parameters |= _sphinx_entry(lines)
        elif title in PARAMETER_SECTIONS:
            parameters |= _google_entries(lines)
    return Docstring(_tidy(prose), parameters)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections with their titles; prose has an empty title."""
    at = 0
    while at < len(lines):
        title, start, end = _section_at(lines, at)
        yield title, lines[start:end]
        at = end


def _section_at(lines: list[str], at: int) -> tuple[str, int, int]:
    line = lines[at]
    if at + 1 < len(lines) and line.strip() and NUMPY_UNDERLINE.match(lines[at + 1]):
        end = _next_numpy_header(lines, at + 2)
        is_about_parameters = line.strip().lower() in PARAMETER_SECTIONS
        return ("numpy" if is_about_parameters else "left out"), at + 2, end
    if SPHINX_FIELD.match(line):
        return "sphinx", at, _end_of_block(lines, at + 1)
    header = GOOGLE_HEADER.match(line)
    if header and header["title"].lower() in KNOWN_SECTIONS:
        return header["title"].lower(), at + 1, _end_of_block(lines, at + 1)
    return "", at, at + 1


def _next_numpy_header(lines: list[str], at: int) -> int:
    for index in range(at, len(lines) - 1):
        if lines[index].strip() and NUMPY_UNDERLINE.match(lines[index + 1]):
            return index
    return len(lines)


def _end_of_block(lines: list[str], at: int) -> int:
    """Return the index of the first line that is neither blank nor indented."""
    for index in range(at, len(lines)):
        if lines[index].strip() and not lines[index].startswith((" ", "\t")):
            return index
    return len(lines)


def _google_entries(lines: list[str]) -> dict[str, str]:
    block = inspect.cleandoc("\n".join(["", *lines])).splitlines()
    return _gather(block, GOOGLE_ENTRY)


def _numpy_entries(lines: list[str]) -> dict[str, str]:
    entries = _gather(lines, NUMPY_ENTRY)
    return {
        name.strip(): text for names, text in entries.items() for name in names.split(",") if text
    }


def _gather(block: list[str], entry: re.Pattern[str]) -> dict[str, str]:
    """Return the entries, which start at the margin and continue indented."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in block:
        start = None if line.startswith((" ", "\t")) else entry.match(line)
        if start:
            current = [start.groupdict().get("text", "")]
            found[start[1]] = current
        else:
            current.append(line)
    return {name: _join(text) for name, text in found.items()}


def _sphinx_entry(lines: list[str]) -> dict[str, str]:
    head = SPHINX_FIELD.match(lines[0])
    if head is None or head["kind"] not in SPHINX_PARAMETERS or not head["about"].split():
        return {}
    name = head["about"].split()[-1].lstrip("*\\")
    return {name: _join([head["text"], *lines[1:]])}


def _join(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _tidy(prose: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
