"""Changes of a source text at positions of its syntax tree; all other bytes stay as they are."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass, field

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file: its text, its encoding, and where its lines begin."""

    text: str
    encoding: str
    begins: tuple[int, ...]

    @classmethod
    def of(cls, data: bytes) -> Source:
        """Return the source in `data`. Raises `SyntaxError` or `UnicodeDecodeError`."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        # Newlines are kept: Python reads \r\n and \r as \n, so that the numbers of lines agree.
        text = data.decode(encoding)
        return cls(text, encoding, (0, *(each.end() for each in _NEWLINE.finditer(text))))

    def offset(self, line: int, column: int) -> int:
        """Return the offset in the text of a place in the tree, whose columns are UTF-8 bytes."""
        begin = self.begins[line - 1]
        # Characters take one byte or more, so that this part is long enough.
        part = self.text[begin : begin + column].encode("utf-8", "surrogatepass")
        return begin + len(part[:column].decode("utf-8", "surrogatepass"))

    def span(self, node: ast.expr | ast.stmt | ast.alias) -> tuple[int, int]:
        """Return where a node begins and ends in the text."""
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self.offset(node.lineno, node.col_offset), end


@dataclass(slots=True)
class Edits:
    """What is put in the place of what."""

    source: Source
    found: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    def replace(self, span: tuple[int, int], text: str) -> None:
        """Put `text` in the place of a part of the source. Parts do not overlap."""
        self.found[span] = text

    def apply(self) -> bytes:
        """Return the changed file, in its own encoding."""
        text = self.source.text
        for (begin, end), new in sorted(self.found.items(), reverse=True):
            text = text[:begin] + new + text[end:]
        return text.encode(self.source.encoding)
