"""Faults on the host's side: slow readers, cancelled callers, full disks, clocks that jump.

`VirtualClockLoop` is an event loop whose time passes when nothing else is to be done.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import selectors
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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


class NothingScheduled(RuntimeError):
    """No task is ready and no timer is set, so the event loop would wait for ever."""


Standstill = NothingScheduled
"""The name that the error was released with."""


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as there is nothing else to do.

    A timeout of an hour takes no time, and a deadlock raises `NothingScheduled` instead of hanging.
    The loop does not wait for other threads, processes or sockets, so everything that a test needs
    must run in this thread.
    Use it with `asyncio.Runner(loop_factory=VirtualClockLoop)`.
    """

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_ImpatientSelector(self._jump))

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._now

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            raise NothingScheduled("every task waits for another one")
        self._now += seconds


class _ImpatientSelector(selectors.DefaultSelector):
    """A selector that never waits: it calls `skip` with the time it should have waited."""

    def __init__(self, skip: Callable[[float | None], None]) -> None:
        super().__init__()
        self._skip = skip

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            self._skip(timeout)
        return ready


class JumpingClock:
    """A clock like `time.time` that jumps, as after a sleep or a correction of the system time.

    `JumpingClock({3: -3600})` is one hour behind from its third reading on.
    """

    def __init__(self, jumps: Mapping[int, float], clock: Callable[[], float] = time.time) -> None:
        self.readings = 0
        self._jumps = jumps
        self._clock = clock
        self._offset = 0.0

    def __call__(self) -> float:
        """Return the seconds since the epoch that this clock shows."""
        self.readings += 1
        self._offset += self._jumps.get(self.readings, 0.0)
        return self._clock() + self._offset
