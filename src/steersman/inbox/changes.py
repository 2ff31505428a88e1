"""Changes of an inbox: outcomes of asks, iterators over the changes, and checks of answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from steersman._json import is_mapping
from steersman.errors import (
    AlreadyAnswered,
    AskChanged,
    AskError,
    AskGone,
    Described,
    ReaderLagged,
    SteersmanError,
    UsageError,
)
from steersman.permissions import Ask

EXPIRED = "Denied: no answer came in time."

MOST_WAITING = 10_000
"""How many changes are kept for a slow watcher."""


@dataclass(frozen=True, slots=True)
class AskOutcome:
    """How an ask ended: answered, expired, or closed by its session."""

    ask_id: str
    how: Literal["answered", "expired", "closed"]
    by: str = ""
    """Who answered or what expired the ask; for `closed`, the reason."""
    answer: Any = None

    def error(self, session: str = "") -> AskError:
        """Return the error for a caller that answers later; `session` is that of the ask."""
        if self.how == "answered":
            return AlreadyAnswered(self.ask_id, self.by, self.answer, session=session)
        reason = f"the session no longer waits for it: {self.by}"
        if self.how == "expired":
            reason = f"it has expired and was denied by {self.by}"
        return AskGone(self.ask_id, reason, session=session)


@dataclass(frozen=True, slots=True)
class Change:
    """One change in an inbox."""

    what: Literal["opened", "delegated", "answered", "expired", "closed"]
    ask: Ask
    outcome: AskOutcome | None = None


class Watch(AsyncIterator[Change]):
    """Yields the changes of an inbox from now on, until `aclose()`.

    Raises `ReaderLagged` if changes were lost because it was read too slowly; you can continue to
    read after that.
    """

    def __init__(self, leave: Callable[[Watch], None], begin: Iterable[Change] = ()) -> None:
        self._loop = _running_loop()
        self._changes: deque[Change] = deque(begin)
        self._news = asyncio.Event()
        self._leave = leave
        self._lost = 0
        self._is_closed = False

    @property
    def is_abandoned(self) -> bool:
        """Whether the event loop of the reader is closed."""
        return self._loop.is_closed()

    def notify(self, change: Change) -> None:
        """Add a change; may be called from any thread."""
        if len(self._changes) >= MOST_WAITING:
            self._lost += 1
            return
        self._changes.append(change)
        # The event loop of a watcher that was not closed may be closed itself.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    async def __anext__(self) -> Change:
        if _running_loop() is not self._loop:
            # It would wait for ever: what wakes it runs in its own loop.
            raise UsageError(
                "event loop",
                Described("another event loop"),
                "the one in which inbox.watch() was called",
                hint="call inbox.watch() in each event loop that reads changes",
            )
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
        """Stop watching."""
        self._is_closed = True
        self._changes.clear()
        self._leave(self)
        self._news.set()


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "event loop",
            None,
            "a running asyncio event loop",
            hint="watch in a coroutine, or use steersman.sync.Inbox(inbox), which needs none",
        ) from None


def check_name(argument: Literal["by", "to"], given: object) -> None:
    """Raise `UsageError` if `given` is not a name."""
    if not (isinstance(given, str) and given):
        raise UsageError(argument, given, "a name that is not empty")


def check_expires_after(given: object) -> None:
    """Raise `UsageError` if `given` is not a time after which asks can expire."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and given > 0
    if not (given is None or is_number):
        raise UsageError("expires_after", given, "seconds above 0, or None")


def check_answer(ask: Ask, answer: object, seen: object) -> None:
    """Raise `UsageError` for an answer of another kind, `AskChanged` for one to another input."""
    if not (seen is None or isinstance(seen, str)):
        raise UsageError("seen", seen, "the digest of the ask that was shown, or None")
    ask.response(answer)
    if seen is not None and seen != ask.digest:
        raise AskChanged(ask.id, seen, ask.digest)


def seen_of(given: Ask | str, seen: str | None) -> str | None:
    """Return the digest of what was shown: of the ask that was given, unless `seen` names one."""
    return given.digest if seen is None and isinstance(given, Ask) else seen


async def answer_each(
    answer_one: Callable[[str, object], Awaitable[AskOutcome]],
    answers: Mapping[str, object] | Iterable[str],
    answer: object,
) -> dict[str, AskOutcome | SteersmanError]:
    """Answer each ask, and return the outcome or the error of each."""
    each: Mapping[str, object] = answers if is_mapping(answers) else dict.fromkeys(answers, answer)
    found: dict[str, AskOutcome | SteersmanError] = {}
    for ask_id, given in each.items():
        try:
            found[ask_id] = await answer_one(ask_id, given)
        except (AskError, UsageError) as error:
            found[ask_id] = error
    return found
