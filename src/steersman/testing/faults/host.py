"""Faults on the host's side: slow readers, cancelled callers, full disks."""

from __future__ import annotations

import asyncio
import errno
import io
import os
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, cast

T = TypeVar("T")


async def rounds(count: int) -> None:
    """Yield to the event loop `count` times."""
    for _ in range(count):
        await asyncio.sleep(0)


class SlowReader(AsyncIterator[T], Generic[T]):
    """Wraps an async iterator and waits before each item."""

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
    """Cancel `doing` after `count` rounds of the event loop; return its result if it was done."""
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
    """A disk with little space: its files raise `OSError` (ENOSPC) when the space is used up.

    Use `FullDisk(room=1000).open` in place of `open(path, "ab")`.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        """The number of bytes that can still be written."""

    def open(self, path: str | Path, mode: str = "wb") -> BinaryIO:
        """Open an unbuffered binary file on this disk."""
        return cast("BinaryIO", _FileOnFullDisk(io.FileIO(path, mode.replace("b", "")), self))

    def take(self, size: int) -> int:
        """Use up to `size` bytes and return how many were free. Raises `OSError` if none were."""
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
        """Write `data`; if the disk is too small, write what fits and raise."""
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
