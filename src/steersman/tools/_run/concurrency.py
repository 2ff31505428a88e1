"""How many calls of one tool run at the same time, whatever session and event loop they serve."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

__all__ = ["ConcurrencyLimit"]


class ConcurrencyLimit:
    """Places for so many calls; whoever finds none waits, first come first served.

    A place may be given back in any thread: a `def` tool keeps its own until its thread is done,
    also when nobody waits for the result any more.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = threading.Lock()

    async def acquire(self) -> None:
        """Take a place, once there is one."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not self._leave(place):
                # It was given to us while we left.
                self.release()
            raise

    def release(self) -> None:
        """Give a place back, or straight to whoever waits for one."""
        with self._lock:
            while self._waiting:
                place = self._waiting.popleft()
                try:
                    place.get_loop().call_soon_threadsafe(_give, place)
                except RuntimeError:
                    # Its event loop is closed: nobody waits there.
                    continue
                return
            self._free += 1

    def _leave(self, place: asyncio.Future[None]) -> bool:
        with self._lock:
            if place not in self._waiting:
                return False
            self._waiting.remove(place)
            return True


def _give(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_result(None)
