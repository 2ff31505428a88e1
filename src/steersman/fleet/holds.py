"""Why a turn has not begun, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from steersman.fleet.ports import JobState

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Hold:
    """The state of a turn, and what it waits for."""

    state: JobState
    why: str
    seconds: float | None = None
    """How long it waits at least, if that is known. The words name the time of day."""

    def words(self, now: float) -> str:
        """Return what it waits for; `now` is the time of day, in seconds since 1970."""
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
