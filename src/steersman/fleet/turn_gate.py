"""Whether a worker may begin a turn: memory, and the rate limit of the API."""

from __future__ import annotations

import time
from collections.abc import Callable

from steersman.fleet.governor import Governor
from steersman.fleet.holds import Hold, memory_hold, rate_hold
from steersman.fleet.rate_limits import RateControl, limited_until
from steersman.messages.parsing import Message


class TurnGate:
    """The governor of one worker. It observes the messages of all turns."""

    def __init__(
        self, slots: int, governor: Governor | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._governor = Governor() if governor is None else governor
        self._rate = RateControl(slots, self._governor.quiet)
        self._clock = clock

    def hold(self, working: int) -> Hold | None:
        """Return what a turn must wait for, beside `working` others; None if it may begin."""
        now = self._clock()
        self._rate.at(now)
        if self._rate.is_closed(now):
            return rate_hold(self._rate.closed_until - now)
        if working >= self._rate.limit:
            return rate_hold(None, self._rate.limit)
        wanted = self._governor.memory_free
        free = self._governor.read_memory() if wanted else None
        return memory_hold(free, wanted) if free is not None and free < wanted else None

    def observe(self, message: Message, began: float, working: int) -> None:
        """Look at a message of a turn that began at `began`, for a refusal of the API."""
        now = self._clock()
        until = limited_until(message, now)
        if until is not None:
            self._rate.hit(now, until, began=began, working=working)
