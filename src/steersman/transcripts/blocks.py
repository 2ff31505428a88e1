"""The lines of a file of JSON lines, forwards and backwards, read in blocks.

A `Source` gives bytes at an offset. It may grow, shrink or be replaced between two reads, so every
loop here ends by itself: forwards at the first read that gives nothing, backwards at offset 0.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, Protocol

BLOCK = 1 << 18
FIRST_BLOCK = 1 << 16
"""The size of the first block from the end: the last messages are mostly found in it."""


class Source(Protocol):
    """Bytes that can be read at any offset."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer, or none, at the end."""
        ...


class Line(NamedTuple):
    """A line, without its newline."""

    offset: int
    data: bytes
    is_ended: bool
    """Whether a newline follows. The last line of a file may have none."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The first `size` bytes of an open file, as a `Source`."""

    file: BinaryIO
    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        self.file.seek(offset)
        return self.file.read(max(0, min(size, self.size - offset)))


class LinesSource:
    """A `Source` of lines in memory, each without its newline."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._starts: list[int] = []
        at = 0
        for line in lines:
            self._starts.append(at)
            at += len(line) + 1
        self.size = at

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or size <= 0 or offset >= self.size:
            return b""
        parts: list[bytes] = []
        missing, skipped = size, offset - self._starts[index]
        while missing > 0 and index < len(self._lines):
            part = self._lines[index][skipped : skipped + missing]
            missing -= len(part)
            parts.append(part)
            if missing > 0:
                parts.append(b"\n")
                missing -= 1
            index, skipped = index + 1, 0
        return b"".join(parts)


def lines_forward(source: Source, start: int = 0, *, block: int = BLOCK) -> Iterator[Line]:
    """Yield the lines from the offset `start`, which is the beginning of one. Empty ones too."""
    at, read_to = start, start
    parts: list[bytes] = []
    while data := source.read(read_to, block):
        read_to += len(data)
        *ended, rest = data.split(b"\n")
        for end in ended:
            line = b"".join((*parts, end)) if parts else end
            parts.clear()
            yield Line(at, line, is_ended=True)
            at += len(line) + 1
        if rest:
            parts.append(rest)
    if parts:
        yield Line(at, b"".join(parts), is_ended=False)


def lines_backward(source: Source, *, block: int = BLOCK) -> Iterator[Line]:
    """Yield the lines from the last to the first. Empty ones too."""
    at = source.size
    parts: list[bytes] = []  # of the line that begins before `at`, the last part first
    is_ended, size = False, min(FIRST_BLOCK, block)
    while at > 0:
        size, start = block, max(0, at - size)
        data = source.read(start, at - start)
        if len(data) < at - start:
            # The file is shorter now. What was read of the line after the gap is no line.
            parts.clear()
            is_ended = False
        first, *chunks = data.split(b"\n")
        at = start
        if chunks:
            last = chunks.pop()
            offset = start + len(data) - len(last)
            line = b"".join((last, *reversed(parts))) if parts else last
            parts.clear()
            if line or is_ended:
                yield Line(offset, line, is_ended)
            is_ended = True
            for chunk in reversed(chunks):
                offset -= len(chunk) + 1
                yield Line(offset, chunk, is_ended=True)
        parts.append(first)
    if is_ended or any(parts):
        yield Line(0, b"".join(reversed(parts)), is_ended)
