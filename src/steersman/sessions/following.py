"""Follows a session file while the CLI writes it."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable

from steersman.sessions.backends import Follower
from steersman.sessions.reading import MARK, FileSource
from steersman.transcripts.blocks import lines_forward
from steersman.transcripts.entries import TranscriptEntry, read_entry

INTERVAL = 0.2
"""Seconds between two looks at a file: soon enough for a screen, and rare enough for a laptop."""
MISSES = 5
"""How often a file may be missing in a row, as while it is replaced."""
MOST_BYTES = 4 << 20
DIGEST = (1 << 64) - 1

Next = Callable[[Follower], Awaitable[list[TranscriptEntry] | None]]


async def follow(follower: Follower, next_of: Next) -> AsyncIterator[TranscriptEntry]:
    """Yield entries as they are added, until the session is deleted."""
    while (found := await next_of(follower)) is not None:
        for entry in found:
            yield entry
        if not found:
            await asyncio.sleep(follower.interval)


class FileFollower:
    """Reads complete lines as they are added.

    If the file was replaced, or has become shorter, what differs from what was read is read again.
    """

    interval = INTERVAL

    def __init__(self, path: str, after: int) -> None:
        self._path = path
        self._after = after
        self._offset = 0
        self._mark = b""
        self._number = -1
        self._misses = 0
        self._index = 0
        """The position of the next entry in the file."""
        self._read = array("Q")
        """A digest of each entry that was read, by its position."""

    async def next(self) -> list[TranscriptEntry] | None:
        """Return the entries that were added; None if the file was removed."""
        try:
            source = FileSource(self._path)
        except OSError:
            self._misses += 1
            return None if self._misses >= MISSES else []
        self._misses = 0
        with source:
            if not self._is_continued(source):
                self._offset, self._index, self._mark = 0, 0, b""
            self._number = source.number
            return self._new(source)

    def _is_continued(self, source: FileSource) -> bool:
        size = len(self._mark)
        if source.number != self._number or source.size < self._offset:
            return False
        return source.read(self._offset - size, size) == self._mark

    def _new(self, source: FileSource) -> list[TranscriptEntry]:
        found: list[TranscriptEntry] = []
        start = self._offset
        for line in lines_forward(source, start):
            if not line.is_ended or line.offset - start > MOST_BYTES:
                break
            self._offset = line.offset + len(line.data) + 1
            self._mark = (line.data[-MARK:] + b"\n")[-MARK:]
            if line.data.strip() and self._is_new(line.data):
                found.append(read_entry(line.data))
        return found

    def _is_new(self, line: bytes) -> bool:
        at, digest = self._index, hash(line) & DIGEST
        self._index += 1
        if at < len(self._read):
            if self._read[at] == digest:
                return False
            del self._read[at:]
        self._read.append(digest)
        return at >= self._after
