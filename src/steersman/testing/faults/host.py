"""What goes wrong on the host's own side: readers that dawdle, callers that leave, full disks."""

from __future__ import annotations

import asyncio
import errno
import io
import os
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, cast

__all__ = ["FullDisk", "SlowReader", "cancelled_after", "rounds"]

T = TypeVar("T")


async def rounds(count: int) -> None:
    """Let the event loop go round so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


class SlowReader(AsyncIterator[T], Generic[T]):
    """Reads from another reader and dawdles before each item."""

    def __init__(self, inner: AsyncIterator[T], *, rounds: int = 3, seconds: float = 0.0) -> None:
        self._inner = inner
        self._rounds = rounds
        self._seconds = seconds

    def __aiter__(self) -> SlowReader[T]:
        return self

    async def __anext__(self) -> T:
        await rounds(self._rounds)
        if self._seconds:
            await asyncio.sleep(self._seconds)
        return await anext(self._inner)


async def cancelled_after(count: int, doing: Awaitable[T]) -> T | None:
    """Give `doing` so many rounds, then cancel it; its outcome, if it was done by then."""
    task = asyncio.ensure_future(doing)
    try:
        for _ in range(count):
            if task.done():
                break
            await asyncio.sleep(0)
    finally:
        task.cancel()
        await asyncio.wait([task])
    return None if task.cancelled() else task.result()


class FullDisk:
    """A disk with little room: opens files that raise `OSError` (ENOSPC) when it is used up.

    `FullDisk(room=1000).open` stands where `open(path, "ab")` would.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        """Bytes that can still be written."""

    def open(self, path: str | Path, mode: str = "wb") -> BinaryIO:
        """A file for bytes, unbuffered."""
        return cast("BinaryIO", _FileOnFullDisk(io.FileIO(path, mode.replace("b", "")), self))

    def take(self, size: int) -> int:
        """Use up room; gives how much of `size` there was. Raises `OSError` if there is none."""
        if size and not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(size, self.room)
        self.room -= taken
        return taken


class _FileOnFullDisk(io.RawIOBase):
    def __init__(self, file: io.FileIO, disk: FullDisk) -> None:
        super().__init__()
        self._file = file
        self._disk = disk

    def writable(self) -> bool:
        return self._file.writable()

    def readable(self) -> bool:
        return self._file.readable()

    def write(self, data: object, /) -> int:
        """Write it all, or as much as there is room for, and raise."""
        chunk = bytes(cast("bytes", data))
        written = self._file.write(chunk[: self._disk.take(len(chunk))])
        if written < len(chunk):
            self._disk.take(len(chunk) - written)
        return written

    def readinto(self, buffer: object, /) -> int:
        return self._file.readinto(cast("bytearray", buffer))

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()
        super().close()
