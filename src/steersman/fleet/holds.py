"""Why a turn has not begun, in words; and how many may run at once while the API limits them.

Pure: time comes in as an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from steersman.fleet.ports import JobState
from steersman.messages.limits import ApiRetry, RateLimitEvent
from steersman.messages.parsing import Message

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Hold:
    """The state of a turn, and what it waits for."""

    state: JobState
    why: str
    seconds: float | None = None
    """How long it waits at least, if that is known. The words name the time of day."""

    def words(self, now: float) -> str:
        """Return the reason in words; `now` is the time of day, in seconds since 1970."""
        if self.seconds is None:
            return self.why
        # The next full minute: at 14:04:59 a limit until 14:05:01 is not one until 14:05.
        until = datetime.fromtimestamp(now + self.seconds + 59, UTC).astimezone()
        return f"{self.why} until {until:%H:%M}"


def behind(turns: int) -> str:
    """Return the words for a turn that waits for others of its conversation."""
    return f"behind {turns} turn{'' if turns == 1 else 's'} of its conversation"


def rate_hold(seconds: float | None, most: int = 0) -> Hold:
    """Return the hold by the rate limit of the API: until a time, or to fewer turns at once."""
    if seconds is not None:
        return Hold("held", "rate limit", seconds)
    return Hold("held", f"rate limit: {most} turn{'' if most == 1 else 's'} at once for now")


def memory_hold(free: int, wanted: int, starting: int = 0) -> Hold:
    """Return the hold by the memory of the machine, of which CLIs that start need some."""
    words = f"memory: {free // MEGABYTE} MB free, {wanted // MEGABYTE} MB wanted"
    if starting and free >= wanted:
        words += f" beside {starting // MEGABYTE} MB for CLIs that start"
    return Hold("held", words)


STATUSES = frozenset({429, 529})
NAMES = frozenset({"rate_limit", "overloaded"})
"""The CLI's names for these failures, should it report no status."""

SHORTEST = 1.0
"""Seconds for which a limit that names no time is taken to last."""


def limited_until(message: Message, now: float) -> float | None:
    """Return until when the API takes no more requests, if a message reports that."""
    match message:
        case ApiRetry(error_status=status, error=name) if status in STATUSES or name in NAMES:
            return now + max(message.retry_delay_ms / 1000, SHORTEST)
        case RateLimitEvent(rate_limit_info=info) if info.status == "rejected":
            return max(info.resets_at or 0.0, now + SHORTEST)
        case _:
            return None


class RateControl:
    """Halves the turns at once when the API refuses, and raises them one by one after quiet."""

    def __init__(self, most: int, quiet: float) -> None:
        self._most = most
        self._quiet = quiet
        self.limit = most
        """How many turns may run at once."""
        self.closed_until = 0.0
        """Until when no turn begins."""
        self._halved = float("-inf")
        """When the limit was halved last."""
        self._raised = 0.0
        """Since when there is quiet, or when the limit was raised last."""

    def hit(self, now: float, until: float, *, began: float, working: int) -> None:
        """Record that a turn that began at `began` was refused, beside `working - 1` others.

        A turn that began before the limit was halved is no evidence about the lower limit.
        """
        self.closed_until = max(self.closed_until, until)
        self._raised = max(self._raised, self.closed_until)
        if began >= self._halved:
            self.limit = max(1, min(self.limit, working) // 2)
            self._halved = now

    def at(self, now: float) -> None:
        """Raise the limit for the quiet time until now."""
        while self.limit < self._most and now >= self._raised + self._quiet:
            self.limit += 1
            self._raised += self._quiet

    def is_closed(self, now: float) -> bool:
        """Whether no turn may begin."""
        return now < self.closed_until

    def changes_at(self, now: float) -> float | None:
        """Return when more turns may run than now; None if all may."""
        if self.is_closed(now):
            return self.closed_until
        return self._raised + self._quiet if self.limit < self._most else None
