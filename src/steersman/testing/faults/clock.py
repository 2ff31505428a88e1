"""Time for tests: an event loop with a virtual clock, and a wall clock that jumps."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping


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
