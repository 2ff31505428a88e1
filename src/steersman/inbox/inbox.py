"""Inbox: the asks of all sessions in this process; the first answer to each one counts.

Asks are data: an open one needs no thread and no task. An inbox may be used from every thread; a
session receives its answer in its own event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from steersman.errors import AskError, AskNotFound, SteersmanError, UsageError
from steersman.inbox.changes import (
    EXPIRED,
    AskOutcome,
    Change,
    Watch,
    answer_each,
    check_answer,
    check_expires_after,
    check_name,
    seen_of,
)
from steersman.permissions import Ask, AskKind
from steersman.ports import Clock

REMEMBERED = 10_000
"""How many outcomes are kept, so that late answers raise an error that names the first one."""

Settle: TypeAlias = Callable[[Any, str], None]
"""Receives the answer to an ask, and the name of who gave it."""

_Key: TypeAlias = tuple[str, str]
"""The session and the id of an ask."""


@dataclass(slots=True)
class _Open:
    """An ask that waits for an answer."""

    ask: Ask
    settle: Settle
    alarm: Callable[[], None] | None = None


class Inbox:
    """Keeps asks until they are answered. Pass it to agents as `inbox=`.

    The first answer to an ask counts. After `expires_after` seconds an ask is denied; by default it
    waits without limit.
    """

    def __init__(self, *, expires_after: float | None = None, clock: Clock = time.time) -> None:
        check_expires_after(expires_after)
        self._expires_after = expires_after
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[_Key, _Open] = {}
        self._outcomes: OrderedDict[_Key, AskOutcome] = OrderedDict()
        self._sessions: dict[str, dict[str, None]] = {}
        """The sessions of each id, in order: CLIs choose the ids, and two may choose the same."""
        self._watchers: list[Watch] = []

    # For sessions: the port `Asks`

    def open(self, ask: Ask, settle: Settle) -> None:
        """Keep `ask` until it is answered; then call `settle` with the answer and its author."""
        waiting = _Open(ask, settle)
        if self._expires_after is not None:
            waiting.ask = replace(ask, expires=self._clock() + self._expires_after)
            waiting.alarm = self._set_alarm(_key_of(ask), self._expires_after)
        with self._lock:
            self._open[_key_of(ask)] = waiting
            self._sessions.setdefault(ask.id, {})[ask.session] = None
        self._notify(Change("opened", waiting.ask))

    def close(self, ask_id: str, reason: str, *, may_return: bool = False) -> None:  # noqa: ARG002
        """Close an ask whose session no longer waits for the answer.

        `may_return` makes no difference: an inbox in memory ends with its process.
        """
        with suppress(AskError, UsageError):
            self._end(self._key(ask_id, None), AskOutcome(ask_id, "closed", reason))

    def close_ask(self, ask: Ask, reason: str, *, may_return: bool = False) -> None:  # noqa: ARG002
        """Close `ask`, and no ask of another session that has the same id."""
        with suppress(AskError):
            self._end(_key_of(ask), AskOutcome(ask.id, "closed", reason))

    # For the program that shows and answers asks

    async def list(
        self,
        *,
        session: str | None = None,
        kind: AskKind | None = None,
        assignee: str | None = None,
    ) -> list[Ask]:
        """Return the open asks, the oldest first."""
        with self._lock:
            asks = [waiting.ask for waiting in self._open.values()]
        return [
            ask
            for ask in asks
            if session in (None, ask.session)
            and kind in (None, ask.kind)
            and assignee in (None, ask.assignee)
        ]

    async def get(self, ask_id: str, *, session: str | None = None) -> Ask:
        """Return an open ask. Raises `AskNotFound`, `AlreadyAnswered` or `AskGone`.

        Raises `UsageError` if several sessions have an ask with this id and `session` is not given.
        """
        return self._ask(self._key(ask_id, session))

    async def answer(
        self,
        ask_id: Ask | str,
        answer: object,
        *,
        by: str = "somebody",
        session: str | None = None,
        seen: str | None = None,
    ) -> AskOutcome:
        """Answer an ask, or the one with this id, with the type of answer that its kind needs.

        A permission needs `Allow` or `Deny`, an AskUserQuestion the result of `Question.answer()`
        or `skip()`, an elicitation `ElicitationAnswer`, a dialog `DialogAnswer`. Raises
        `AlreadyAnswered` with the name of who was first, `AskGone`, `AskNotFound`, or `UsageError`
        for another type, or if several sessions have an ask with this id: then pass `session`.
        `seen` is the `digest` of the ask that was shown; if it is another, raises `AskChanged`. For
        an ask, and not its id, it is the digest of that ask.
        """
        check_name("by", by)
        key = self._key(ask_id, session)
        check_answer(self._ask(key), answer, seen_of(ask_id, seen))
        return self._end(key, AskOutcome(key[1], "answered", by, answer))

    async def answer_many(
        self,
        answers: Mapping[str, object] | Iterable[str],
        answer: object = None,
        *,
        by: str,
        session: str | None = None,
    ) -> dict[str, AskOutcome | SteersmanError]:
        """Answer several asks: a mapping of ids to answers, or ids and one answer for all.

        Returns the outcome or the error of each; an error does not stop the others.
        """

        async def one(ask_id: str, given: object) -> AskOutcome:
            return await self.answer(ask_id, given, by=by, session=session)

        return await answer_each(one, answers, answer)

    async def expire(
        self, ask_id: Ask | str, *, by: str = "expiry", session: str | None = None
    ) -> AskOutcome:
        """End an ask without an answer: it is denied, declined or cancelled, as its kind needs."""
        check_name("by", by)
        return self._expire(self._key(ask_id, session), by)

    async def delegate(self, ask_id: Ask | str, to: str, *, session: str | None = None) -> Ask:
        """Assign an ask to `to`; others can still answer it."""
        check_name("to", to)
        key = self._key(ask_id, session)
        with self._lock:
            waiting = self._waiting(key)
            waiting.ask = replace(waiting.ask, assignee=to)
        self._notify(Change("delegated", waiting.ask))
        return waiting.ask

    def watch(self) -> Watch:
        """Return an async iterator over the changes from now on; it begins with the open asks."""
        with self._lock:
            begin = [Change("opened", waiting.ask) for waiting in self._open.values()]
            watch = Watch(self._leave, begin)
            self._watchers.append(watch)
        return watch

    # How an ask ends

    def _expire(self, key: _Key, by: str) -> AskOutcome:
        refusal = self._ask(key).refusal(EXPIRED)
        return self._end(key, AskOutcome(key[1], "expired", by, refusal))

    def _end(self, key: _Key, outcome: AskOutcome) -> AskOutcome:
        """Remove an ask and keep its outcome; a later answer gets an error that names the first."""
        with self._lock:
            waiting = self._waiting(key)
            del self._open[key]
            self._outcomes[key] = outcome
            while len(self._outcomes) > REMEMBERED:
                self._forget(self._outcomes.popitem(last=False)[0])
        if waiting.alarm is not None:
            waiting.alarm()
        if outcome.how != "closed":
            waiting.settle(outcome.answer, outcome.by)
        self._notify(Change(outcome.how, waiting.ask, outcome))
        return outcome

    def _key(self, ask_id: Ask | str, session: str | None) -> _Key:
        """Return the key of an ask. An id of several sessions could mean the wrong one."""
        if isinstance(ask_id, Ask):
            if session not in (None, ask_id.session):
                raise UsageError("session", session, f"{ask_id.session!r}, the session of this ask")
            return _key_of(ask_id)
        if session is not None:
            return session, ask_id
        with self._lock:
            sessions = tuple(self._sessions.get(ask_id, ()))
        if len(sessions) > 1:
            several = f"one of {', '.join(map(repr, sessions))}: each has an ask {ask_id!r}"
            raise UsageError("session", None, several)
        return (sessions[0] if sessions else ""), ask_id

    def _ask(self, key: _Key) -> Ask:
        with self._lock:
            return self._waiting(key).ask

    def _waiting(self, key: _Key) -> _Open:
        waiting = self._open.get(key)
        if waiting is not None:
            return waiting
        outcome = self._outcomes.get(key)
        raise AskNotFound(key[1]) if outcome is None else outcome.error(key[0])

    def _forget(self, key: _Key) -> None:
        session, ask_id = key
        sessions = self._sessions.get(ask_id, {})
        if key not in self._open:
            sessions.pop(session, None)
        if not sessions:
            self._sessions.pop(ask_id, None)

    def _set_alarm(self, key: _Key, seconds: float) -> Callable[[], None]:
        """Start a timer in the session's event loop; return a function that cancels it.

        The function may be called from any thread.
        """
        loop = asyncio.get_running_loop()

        def ring() -> None:
            with suppress(AskError):
                self._expire(key, "expiry")

        timer = loop.call_later(seconds, ring)

        def call_off() -> None:
            # The loop may be closed already.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(timer.cancel)

        return call_off

    def _notify(self, change: Change) -> None:
        with self._lock:
            watchers = tuple(self._watchers)
        for watch in watchers:
            watch.notify(change)

    def _leave(self, watch: Watch) -> None:
        with self._lock, suppress(ValueError):
            self._watchers.remove(watch)


def _key_of(ask: Ask) -> _Key:
    return ask.session, ask.id
