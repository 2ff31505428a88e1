"""The head of a Markdown file, between two lines of `---`: the part of YAML that skills use.

Understood: `key: value` with nested keys, block and `[flow, lists]`, quoted and plain texts also
over several lines, `|` and `>` blocks, `true` and `false`, and comments. Numbers stay texts.
Anchors, tags, `{flow: mappings}` and keys in quotes are refused with their line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["FrontMatterError", "split_front_matter"]

FENCE = "---"
KEY = re.compile(r"(?P<key>[A-Za-z_][\w.$-]*)\s*:(?:\s+(?P<rest>.*))?$")
BLOCK = re.compile(r"[|>][+-]?")
COMMENT = re.compile(r"(?:^|\s)#.*$")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


class FrontMatterError(ValueError):
    """The head of a file cannot be read; the text names the line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields in the head of `text`, and what comes after it.

    Without a head there are no fields. Raises `FrontMatterError`.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text
    ends = [n for n, line in enumerate(lines) if n > 0 and line.rstrip() == FENCE]
    if not ends:
        raise FrontMatterError(1, "the front matter is not closed by a line of ---")
    reader = _Reader([_Line.of(n + 1, line) for n, line in enumerate(lines[: ends[0]]) if n > 0])
    return reader.mapping(0), "\n".join(lines[ends[0] + 1 :])


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str

    @classmethod
    def of(cls, number: int, line: str) -> _Line:
        text = line.rstrip()
        if "\t" in text[: len(text) - len(text.lstrip())]:
            raise FrontMatterError(number, "indented with a tab; use spaces")
        return cls(number, len(text) - len(text.lstrip()), text.strip())

    @property
    def is_empty(self) -> bool:
        return not self.text or self.text.startswith("#")


class _Reader:
    """Reads lines top down; what stands deeper belongs to what stands above it."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._at = 0

    def mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (line := self._next_of(indent)) is not None:
            match = KEY.fullmatch(line.text)
            if match is None:
                raise FrontMatterError(line.number, "not `key: value`")
            if match["key"] in found:
                raise FrontMatterError(line.number, f"{match['key']} is there twice")
            self._at += 1
            found[match["key"]] = self._value(line, match["rest"] or "")
        return found

    def _value(self, line: _Line, rest: str) -> Any:
        if BLOCK.fullmatch(_uncommented(rest)):
            return self._block(line, rest)
        if _uncommented(rest):
            return _scalar(line.number, " ".join([rest, *self._continued(line)]))
        below = self._peek()
        if below is None or below.indent < line.indent:
            return None
        if below.text.startswith("- ") or below.text == "-":
            return self._list(below.indent)
        return self.mapping(below.indent) if below.indent > line.indent else None

    def _list(self, indent: int) -> list[Any]:
        found: list[Any] = []
        while (line := self._peek()) is not None and line.indent == indent:
            if not (line.text.startswith("- ") or line.text == "-"):
                break
            self._at += 1
            item = line.text[1:].strip()
            inner = _Line(line.number, indent + 2, item)
            if KEY.fullmatch(item) and not item.startswith(("'", '"')):
                self._at -= 1
                self._lines[self._at] = inner
                found.append(self.mapping(inner.indent))
            else:
                found.append(_scalar(line.number, " ".join([item, *self._continued(line)])))
        return found

    def _block(self, line: _Line, mark: str) -> str:
        """A text of several lines, kept as they are by `|` and joined by `>`."""
        taken: list[_Line] = []
        while self._at < len(self._lines):
            below = self._lines[self._at]
            if below.text and below.indent <= line.indent:
                break
            taken.append(below)
            self._at += 1
        base = min((each.indent for each in taken if each.text), default=0)
        texts = [" " * (each.indent - base) + each.text if each.text else "" for each in taken]
        if mark.startswith("|"):
            return "\n".join(texts).strip("\n")
        paragraphs = "\n".join(texts).strip("\n").split("\n\n")
        return "\n".join(" ".join(each.split("\n")) for each in paragraphs)

    def _continued(self, line: _Line) -> list[str]:
        """The deeper lines of a plain or quoted text."""
        found: list[str] = []
        while (below := self._peek()) is not None and below.indent > line.indent:
            found.append(below.text)
            self._at += 1
        return found

    def _next_of(self, indent: int) -> _Line | None:
        line = self._peek()
        if line is None or line.indent < indent:
            return None
        if line.indent > indent:
            raise FrontMatterError(line.number, "indented further than its neighbours")
        return line

    def _peek(self) -> _Line | None:
        while self._at < len(self._lines) and self._lines[self._at].is_empty:
            self._at += 1
        return self._lines[self._at] if self._at < len(self._lines) else None


def _uncommented(text: str) -> str:
    return text if text.startswith(("'", '"')) else COMMENT.sub("", text).strip()


def _scalar(number: int, text: str) -> Any:
    text = text.strip()
    if text.startswith(("'", '"')):
        return _quoted(number, text)
    text = _uncommented(text)
    if text.startswith("["):
        if not text.endswith("]"):
            raise FrontMatterError(number, "a list that is not closed by ]")
        return [_scalar(number, each) for each in _split(text[1:-1]) if each.strip()]
    if text.startswith(("{", "&", "!", "%", "@", "`")):
        raise FrontMatterError(number, f"{text[0]} is not understood here; put it in quotes")
    return WORDS.get(text.lower(), text)


def _quoted(number: int, text: str) -> str:
    quote = text[0]
    pattern = r"'((?:[^']|'')*)'" if quote == "'" else r'("(?:[^"\\]|\\.)*")'
    match = re.fullmatch(pattern + r"(?:\s+#.*)?", text)
    if match is None:
        raise FrontMatterError(number, f"a text that is not closed by {quote}")
    if quote == "'":
        return match[1].replace("''", "'")
    try:
        return str(json.loads(match[1], strict=False))
    except ValueError:
        raise FrontMatterError(number, "an escape that is not understood") from None


def _split(text: str) -> list[str]:
    """The items of a flow list; commas in quotes and brackets do not separate."""
    found, item, depth, quote = list[str](), "", 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"" and not item.strip():
            quote = character
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quote:
            found.append(item)
            item = ""
        else:
            item += character
    return [*found, item]
