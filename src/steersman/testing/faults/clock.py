"""Time in the hands of a test: an event loop that does not wait, and a clock that jumps."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping

__all__ = ["JumpingClock", "NothingScheduled", "Standstill", "VirtualClockLoop"]


class NothingScheduled(RuntimeError):
    """Nothing is ready, no timer is set, so no task will ever run again."""


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
        """Seconds since this loop was made, as it counts them."""
        return self._now

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            raise NothingScheduled("every task waits for another one")
        self._now += seconds


class _ImpatientSelector(selectors.DefaultSelector):
    """Looks, and where it should wait, says for how long."""

    def __init__(self, skip: Callable[[float | None], None]) -> None:
        super().__init__()
        self._skip = skip

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            self._skip(timeout)
        return ready


class JumpingClock:
    """A clock like `time.time` that jumps, as when a laptop wakes or a server is set right.

    `JumpingClock({3: -3600})` is an hour behind from its third reading on.
    """

    def __init__(self, jumps: Mapping[int, float], clock: Callable[[], float] = time.time) -> None:
        self.readings = 0
        self._jumps = jumps
        self._clock = clock
        self._offset = 0.0

    def __call__(self) -> float:
        """Seconds since the epoch, as this clock has it."""
        self.readings += 1
        self._offset += self._jumps.get(self.readings, 0.0)
        return self._clock() + self._offset
