"""Delivers chunks in order while some of them are delayed."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from steersman.testing.faults.kinds import Segment, Wait


class Flow:
    """A pipe with delays. Chunks that need not wait are delivered inside `put`."""

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        self._waiting: deque[Segment | Callable[[], None]] = deque()
        self._is_held = False
        self._is_flowing = False
        self._timer: asyncio.Handle | None = None

    def put(self, *segments: Segment | Callable[[], None]) -> None:
        """Deliver chunks, apply waits and call functions, in order, after those put before."""
        self._waiting.extend(segment for segment in segments if segment != b"")
        self._flow()

    def release(self) -> None:
        """End the current wait."""
        if self._timer is not None:
            self._timer.cancel()
        self._is_held = False
        self._flow()

    def drop(self) -> None:
        """Discard everything that was not delivered, and end the current wait."""
        self._waiting.clear()
        self.release()

    def flush(self) -> None:
        """Deliver everything now, without waiting."""
        kept = [segment for segment in self._waiting if not isinstance(segment, Wait)]
        self._waiting = deque(kept)
        self.release()

    def _flow(self) -> None:
        # A delivery may call `put`; the loop that is already running delivers those chunks.
        if self._is_flowing:
            return
        self._is_flowing = True
        try:
            while self._waiting and not self._is_held:
                self._pass(self._waiting.popleft())
        finally:
            self._is_flowing = False

    def _pass(self, segment: Segment | Callable[[], None]) -> None:
        if isinstance(segment, bytes):
            self._deliver(segment)
        elif isinstance(segment, Wait):
            self._is_held = True
            self._after(segment.rounds, segment)
        else:
            segment()

    def _after(self, rounds: int, wait: Wait) -> None:
        loop = asyncio.get_running_loop()
        if rounds > 0:
            self._timer = loop.call_soon(self._after, rounds - 1, wait)
        elif wait.seconds == math.inf:
            self._timer = None
        elif wait.seconds:
            elapsed = Wait(joins=wait.joins)
            self._timer = loop.call_later(wait.seconds, self._after, 0, elapsed)
        else:
            if wait.joins:
                self._join()
            self.release()

    def _join(self) -> None:
        chunks: list[bytes] = []
        while self._waiting and isinstance(first := self._waiting[0], bytes):
            chunks.append(first)
            self._waiting.popleft()
        if chunks:
            self._waiting.appendleft(b"".join(chunks))
