"""How a reader of a journal waits until it grows.

A token that comes alone finds the processor's caches cold, so its cost is the number of different
functions that it passes through. So a wait is one object, without a constructor in Python, and it
can continue its task inside the callback that received the token, not in another iteration of the
event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Generator
from typing import Any

from msgspec import Struct


class JournalWait(Struct, eq=False, weakref=False):
    """One wait of one task for a journal to grow.

    To asyncio it is a future: the names that tasks use are those of `asyncio.Future`. Unlike one,
    it can continue its task at once.
    """

    waiting: list[JournalWait]
    """The list of those that wait; this wait is in it until it has ended."""
    _loop: asyncio.AbstractEventLoop
    _asyncio_future_blocking: bool = False
    """Set here and reset by the task, as for every future."""
    has_ended: bool = False
    cancelled: asyncio.CancelledError | None = None
    """The error to raise, if the wait was cancelled."""
    wakeup: Callable[[Any], object] | None = None
    """Continues the task."""
    context: contextvars.Context | None = None
    """The context of the task."""

    def __await__(self) -> Generator[Any, None, None]:
        if not self.has_ended:
            self.waiting.append(self)
            self._asyncio_future_blocking = True
            yield self
        self.result()

    def finish(self) -> None:
        """End the wait; its task continues in the next iteration of the loop."""
        self.has_ended = True
        if self.wakeup is not None:
            self._loop.call_soon(self.wakeup, self, context=self.context)

    def add_done_callback(
        self, wakeup: Callable[[Any], object], *, context: contextvars.Context | None = None
    ) -> None:
        """Keep what continues the task, which calls this once."""
        self.wakeup, self.context = wakeup, context

    def result(self) -> None:
        """Raise `CancelledError` if the wait was cancelled."""
        if self.cancelled is not None:
            raise self.cancelled

    def cancel(self, msg: object = None) -> bool:
        """End the wait with `CancelledError`, unless it has ended."""
        if self.has_ended:
            return False
        self.waiting.remove(self)
        self.cancelled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self.finish()
        return True
