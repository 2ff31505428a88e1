"""What becomes of an ask, what happens in an inbox, and those who watch it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from steersman.errors import AlreadyAnswered, AskError, AskGone, ReaderLagged
from steersman.permissions import Ask

__all__ = ["AskOutcome", "Change", "Watch"]

MOST_WAITING = 10_000
"""Changes kept for a watcher that is slow."""


@dataclass(frozen=True, slots=True)
class AskOutcome:
    """How an ask ended: answered, expired, or gone with its session."""

    ask_id: str
    how: Literal["answered", "expired", "closed"]
    by: str = ""
    """Who answered, or why nobody did."""
    answer: Any = None

    def error(self) -> AskError:
        """What somebody is told who answers after this."""
        if self.how == "answered":
            return AlreadyAnswered(self.ask_id, self.by, self.answer)
        if self.how == "expired":
            return AskGone(self.ask_id, f"it has expired, and was denied by {self.by}")
        return AskGone(self.ask_id, f"nobody waits for it any more: {self.by}")


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened in an inbox."""

    what: Literal["opened", "delegated", "answered", "expired", "closed"]
    ask: Ask
    outcome: AskOutcome | None = None


class Watch(AsyncIterator[Change]):
    """The changes of an inbox from one moment on. Ends with `aclose()`.

    Raises `ReaderLagged` when it was read too slowly; it goes on after that.
    """

    def __init__(self, leave: Callable[[Watch], None], begin: Iterable[Change] = ()) -> None:
        self._loop = asyncio.get_running_loop()
        self._changes: deque[Change] = deque(begin)
        self._news = asyncio.Event()
        self._leave = leave
        self._lost = 0
        self._is_closed = False

    def tell(self, change: Change) -> None:
        """Learn of a change; may be called from any thread."""
        if len(self._changes) >= MOST_WAITING:
            self._lost += 1
            return
        self._changes.append(change)
        # The loop of a watcher that forgot to close may be gone.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    async def __anext__(self) -> Change:
        while not (self._changes or self._lost or self._is_closed):
            self._news.clear()
            if not self._changes:
                await self._news.wait()
        if self._lost and not self._changes:
            lost, self._lost = self._lost, 0
            raise ReaderLagged(lost)
        if not self._changes:
            raise StopAsyncIteration
        return self._changes.popleft()

    async def aclose(self) -> None:
        """Watch no more."""
        self._is_closed = True
        self._changes.clear()
        self._leave(self)
        self._news.set()
