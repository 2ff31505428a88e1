"""Chunks to lines.

Fed by a channel, feeds the codec. Knows newlines and a size limit, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import final

__all__ = ["DEFAULT_LIMIT", "LineFramer", "Oversize"]

DEFAULT_LIMIT = 256 * 1024 * 1024
HEAD = 200
NEWLINE, RETURN, BLANK = ord("\n"), ord("\r"), ord(" ")


@final
@dataclass(frozen=True, slots=True)
class Oversize:
    """A line was longer than the limit and is gone, but for its head."""

    size: int
    head: bytes


class LineFramer:
    """Collects chunks and gives out the lines they complete, each in time linear in its size."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        """The beginning of the line being skipped, while one is."""

    def feed(self, chunk: bytes) -> list[bytes | Oversize]:
        """What `chunk` completes, in order, without line ends; blank lines are left out."""
        if not self._size and chunk[-1] == NEWLINE and len(chunk) <= self._limit:
            line = chunk[:-1]
            # `int in bytes` takes a sixth of the time of `bytes in bytes`.
            if NEWLINE not in line and RETURN not in line:
                # One line and nothing else: how questions come.
                return [line] if line and (line[0] > BLANK or not line.isspace()) else []
        end = chunk.find(b"\n")
        if end < 0:
            self._keep(chunk)
            return []
        self._keep(chunk[:end])
        first = self._take()
        whole = self._rest(chunk, end + 1)
        return whole if _is_blank(first) else [first, *whole]

    def _rest(self, chunk: bytes, start: int) -> list[bytes | Oversize]:
        """The lines of `chunk` from `start` on; what is left of one behind them is kept."""
        # Not `split`, which takes the bytes one by one.
        stream = BytesIO(chunk)
        stream.seek(start)
        lines = stream.readlines()
        if not chunk.endswith(b"\n"):
            self._keep(lines.pop())
        if self._is_plain(chunk):
            return [line[:-1] for line in lines if line[0] > BLANK or not line.isspace()]
        fitted = [self._fit(line[:-1]) for line in lines]
        return [line for line in fitted if not _is_blank(line)]

    def finish(self) -> list[bytes | Oversize]:
        """The unfinished last line, if the peer closed without a newline."""
        line = self._take()
        return [] if _is_blank(line) else [line]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._head is not None:
            return
        self._parts.append(part)
        if self._size > self._limit:
            self._head = _head_of(self._parts)
            self._parts.clear()

    def _take(self) -> bytes | Oversize:
        parts, size, head = self._parts, self._size, self._head
        self._parts, self._size, self._head = [], 0, None
        if head is not None:
            return Oversize(size, head)
        return _bare(parts[0] if len(parts) == 1 else b"".join(parts))

    def _is_plain(self, chunk: bytes) -> bool:
        """Whether no line inside can be too long or end in a carriage return: nearly always."""
        return len(chunk) <= self._limit and RETURN not in chunk

    def _fit(self, line: bytes) -> bytes | Oversize:
        """A line that came in one chunk; it too may be longer than a small limit."""
        return _bare(line) if len(line) <= self._limit else Oversize(len(line), line[:HEAD])


def _is_blank(line: bytes | Oversize) -> bool:
    return type(line) is bytes and (not line or line.isspace())


def _bare(line: bytes) -> bytes:
    """Without a carriage return at its end."""
    return line[:-1] if line.endswith(b"\r") else line


def _head_of(parts: list[bytes]) -> bytes:
    head = b""
    for part in parts:
        head += part[: HEAD - len(head)]
        if len(head) == HEAD:
            break
    return head
