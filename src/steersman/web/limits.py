"""What one bridge accepts: sizes, connections, writes; and the counters that hold it to that."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from steersman.errors import UsageError
from steersman.web.failures import Refusal

MINUTE = 60.0
MOST_WRITERS = 10_000
"""How many viewers are remembered with their writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """Limits of a bridge. What is beyond one is refused with 413 or 429."""

    body: int = 1_000_000
    """Bytes of a request's body, of a live frame, and of the text of a prompt."""
    attachments: int = 20_000_000
    """Bytes of a request that begins a session or sends a prompt, with what is attached."""
    connections: int = 200
    """WebSockets and event streams that are open at once."""
    viewer_connections: int = 50
    """Those of one viewer, if `authenticate=` knows several."""
    writes: int = 60
    """Writes of one viewer in a minute."""
    sessions: int = 50
    """Sessions whose CLI runs at once."""
    idle: float = 900.0
    """Seconds without work after which a session is closed; the next prompt opens it again.

    One that waits for asks in a store alone is parked then; an answer opens it again.
    """
    patience: float = 60.0
    """Seconds that one message to a viewer may take; a slower one is disconnected.

    Also those in which the next part of a body must come, and those in which `authenticate` must
    answer for a connection that is open.
    """

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            if not is_number or given <= 0:
                raise UsageError(each.name, given, "a number above 0")


class Connections:
    """Counts the connections that stay open."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._open: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many are open."""
        return self._open.total()

    @contextmanager
    def one(self, viewer: str) -> Generator[None, None, None]:
        """Count one connection until the block ends. Raises `Refusal` if there are too many."""
        if self.count >= self._most:
            words = f"{self._most} connections are open, which is all that this server accepts"
            raise Refusal(429, "too_many_connections", words)
        if self._open[viewer] >= self._most_each:
            words = f"{viewer} has {self._most_each} connections open; close one of them"
            raise Refusal(429, "too_many_connections", words)
        self._open[viewer] += 1
        try:
            yield
        finally:
            self._open[viewer] -= 1
            if not self._open[viewer]:
                del self._open[viewer]


class Writes:
    """Counts the writes of each viewer over the last minute."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def count(self, viewer: str) -> None:
        """Count a write. Raises `Refusal` if the viewer had all of this minute."""
        now = self._clock()
        times = self._times.pop(viewer, None) or deque[float]()
        # Last in the dict: the first ones are those that have not written for longest.
        self._times[viewer] = times
        while times and times[0] <= now - MINUTE:
            times.popleft()
        if len(times) >= self._most:
            seconds = round(times[0] + MINUTE - now, 1)
            words = f"{self._most} writes a minute are accepted; try again in {seconds:g} s"
            raise Refusal(429, "too_many_writes", words, retry_after=seconds)
        times.append(now)
        while len(self._times) > MOST_WRITERS:
            del self._times[next(iter(self._times))]
