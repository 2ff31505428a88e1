"""Chunks to lines.

Fed by a channel, feeds `routing`. Knows newlines and a size limit, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import final

DEFAULT_LIMIT = 256 * 1024 * 1024
HEAD = 200
NEWLINE, RETURN, BLANK = ord("\n"), ord("\r"), ord(" ")


@final
@dataclass(frozen=True, slots=True)
class Oversize:
    """A line that was longer than the limit; only its head is kept."""

    size: int
    head: bytes


class LineFramer:
    """Collects chunks and returns the lines that they complete, in linear time."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        """The head of the line that is being skipped, if any."""

    def feed(self, chunk: bytes) -> list[bytes | Oversize]:
        """Return the lines that `chunk` completes, without line ends and blank lines."""
        if not self._size and chunk[-1] == NEWLINE and len(chunk) <= self._limit:
            line = chunk[:-1]
            # `int in bytes` takes a sixth of the time of `bytes in bytes`.
            if NEWLINE not in line and RETURN not in line:
                # Exactly one line: most control requests arrive like this.
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
        """Return the lines of `chunk` from `start` on, and keep an unfinished one."""
        # Not `split`, which is slower: it compares byte by byte.
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
        """Return the unfinished last line, if the output ended without a newline."""
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
        """Whether no line of `chunk` can be too long or end in a carriage return."""
        return len(chunk) <= self._limit and RETURN not in chunk

    def _fit(self, line: bytes) -> bytes | Oversize:
        """Return the line, or `Oversize` if it is longer than the limit."""
        return _bare(line) if len(line) <= self._limit else Oversize(len(line), line[:HEAD])


def _is_blank(line: bytes | Oversize) -> bool:
    return type(line) is bytes and (not line or line.isspace())


def _bare(line: bytes) -> bytes:
    """Return `line` without a carriage return at its end."""
    return line[:-1] if line.endswith(b"\r") else line


def _head_of(parts: list[bytes]) -> bytes:
    head = b""
    for part in parts:
        head += part[: HEAD - len(head)]
        if len(head) == HEAD:
            break
    return head
