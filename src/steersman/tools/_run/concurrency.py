"""`max_concurrency`: how many calls of one tool run at the same time, over all event loops."""

from __future__ import annotations

import asyncio
import threading
from collections import deque


class ConcurrencyLimit:
    """A semaphore over several event loops; waiters are served in the order in which they came.

    `release` may be called in any thread: a `def` tool keeps its slot until its thread returns,
    also after its call was cancelled.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = threading.Lock()

    async def acquire(self) -> None:
        """Wait for a free slot and occupy it."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            slot = asyncio.get_running_loop().create_future()
            self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not self._stop_waiting(slot):
                # The slot was assigned to this call just before it was cancelled.
                self.release()
            raise

    def release(self) -> None:
        """Free a slot, or pass it to the next waiter."""
        with self._lock:
            while self._waiting:
                slot = self._waiting.popleft()
                try:
                    slot.get_loop().call_soon_threadsafe(_assign, slot)
                except RuntimeError:
                    # The waiter's event loop is closed.
                    continue
                return
            self._free += 1

    def _stop_waiting(self, slot: asyncio.Future[None]) -> bool:
        with self._lock:
            if slot not in self._waiting:
                return False
            self._waiting.remove(slot)
            return True


def _assign(slot: asyncio.Future[None]) -> None:
    if not slot.done():
        slot.set_result(None)
