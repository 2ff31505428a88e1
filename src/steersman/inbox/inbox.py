"""Inbox: every ask of every session in this process, answered by whoever is first.

Asks are data: an open one costs no thread and no task. Any thread may use an inbox; a session takes
its answer in its own event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from steersman._json import is_mapping
from steersman.errors import AskError, AskNotFound, SteersmanError, UsageError
from steersman.inbox.changes import AskOutcome, Change, Watch
from steersman.permissions import Ask, AskKind
from steersman.ports import Clock

__all__ = ["Inbox"]

REMEMBERED = 10_000
"""Outcomes kept, so that late answers learn who was first."""

Settle: TypeAlias = Callable[[Any, str], None]
"""Takes the answer to an ask, and who gave it."""

EXPIRED = "Denied: nobody answered in time."


@dataclass(slots=True)
class _Open:
    """An ask that waits."""

    ask: Ask
    settle: Settle
    alarm: Callable[[], None] | None = None


class Inbox:
    """Where asks wait. Give it to agents with `inbox=`; the first answer to an ask counts.

    `expires_after` seconds an ask is denied by itself; by default it waits for ever.
    """

    def __init__(self, *, expires_after: float | None = None, clock: Clock = time.time) -> None:
        is_number = isinstance(expires_after, int | float) and not isinstance(expires_after, bool)
        if not (expires_after is None or (is_number and expires_after > 0)):
            raise UsageError("expires_after", expires_after, "seconds above 0, or None")
        self._expires_after = expires_after
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._outcomes: OrderedDict[str, AskOutcome] = OrderedDict()
        self._watchers: list[Watch] = []

    # For sessions: the port `Asks`

    def open(self, ask: Ask, settle: Settle) -> None:
        """Keep `ask` until somebody answers it."""
        waiting = _Open(ask, settle)
        if self._expires_after is not None:
            waiting.ask = replace(ask, expires=self._clock() + self._expires_after)
            waiting.alarm = self._set_alarm(ask.id, self._expires_after)
        with self._lock:
            self._open[ask.id] = waiting
        self._tell(Change("opened", waiting.ask))

    def close(self, ask_id: str, reason: str) -> None:
        """Nobody waits for this answer any more."""
        with suppress(AskError):
            self._end(AskOutcome(ask_id, "closed", reason))

    # For people

    def list(
        self,
        *,
        session: str | None = None,
        kind: AskKind | None = None,
        assignee: str | None = None,
    ) -> list[Ask]:
        """The asks that wait, the oldest first."""
        with self._lock:
            asks = [waiting.ask for waiting in self._open.values()]
        return [
            ask
            for ask in asks
            if session in (None, ask.session)
            and kind in (None, ask.kind)
            and assignee in (None, ask.assignee)
        ]

    def get(self, ask_id: str) -> Ask:
        """An ask that waits. Raises `AskNotFound`, `AlreadyAnswered` or `AskGone`."""
        with self._lock:
            return self._waiting(ask_id).ask

    async def answer(self, ask_id: str, answer: object, *, by: str = "somebody") -> AskOutcome:
        """Answer an ask, in the form that its kind needs.

        A permission takes `Allow` or `Deny`, a question what `Question.answer()` and `skip()` give,
        an elicitation `ElicitationAnswer`, a dialog `DialogAnswer`. Raises `AlreadyAnswered` with
        the name of who was first, `AskGone`, `AskNotFound`, or `UsageError` for another form.
        """
        _check_name("by", by)
        self.get(ask_id).response(answer)
        return self._end(AskOutcome(ask_id, "answered", by, answer))

    async def answer_many(
        self, answers: Mapping[str, object] | Iterable[str], answer: object = None, *, by: str
    ) -> dict[str, AskOutcome | SteersmanError]:
        """Answer several: ids with an answer each, or ids and one answer for all.

        Gives what became of each; one that fails does not stop the others.
        """
        each: Mapping[str, object] = (
            answers if is_mapping(answers) else dict.fromkeys(answers, answer)
        )
        found: dict[str, AskOutcome | SteersmanError] = {}
        for ask_id, given in each.items():
            try:
                found[ask_id] = await self.answer(ask_id, given, by=by)
            except (AskError, UsageError) as error:
                found[ask_id] = error
        return found

    async def expire(self, ask_id: str, *, by: str = "expiry") -> AskOutcome:
        """Let an ask wait no longer: it is denied, declined or cancelled, as its kind needs."""
        _check_name("by", by)
        return self._expire(ask_id, by)

    async def delegate(self, ask_id: str, to: str) -> Ask:
        """Say who is to answer an ask; anybody still can."""
        _check_name("to", to)
        with self._lock:
            waiting = self._waiting(ask_id)
            waiting.ask = replace(waiting.ask, assignee=to)
        self._tell(Change("delegated", waiting.ask))
        return waiting.ask

    def watch(self) -> Watch:
        """What happens from now on, for `async for`; begins with the asks that wait already."""
        with self._lock:
            begin = [Change("opened", waiting.ask) for waiting in self._open.values()]
            watch = Watch(self._leave, begin)
            self._watchers.append(watch)
        return watch

    # How an ask ends

    def _expire(self, ask_id: str, by: str) -> AskOutcome:
        refusal = self.get(ask_id).refusal(EXPIRED)
        return self._end(AskOutcome(ask_id, "expired", by, refusal))

    def _end(self, outcome: AskOutcome) -> AskOutcome:
        """Take an ask out; whoever comes second learns who was first."""
        with self._lock:
            waiting = self._waiting(outcome.ask_id)
            del self._open[outcome.ask_id]
            self._outcomes[outcome.ask_id] = outcome
            while len(self._outcomes) > REMEMBERED:
                self._outcomes.popitem(last=False)
        if waiting.alarm is not None:
            waiting.alarm()
        if outcome.how != "closed":
            waiting.settle(outcome.answer, outcome.by)
        self._tell(Change(outcome.how, waiting.ask, outcome))
        return outcome

    def _waiting(self, ask_id: str) -> _Open:
        waiting = self._open.get(ask_id)
        if waiting is not None:
            return waiting
        outcome = self._outcomes.get(ask_id)
        raise AskNotFound(ask_id) if outcome is None else outcome.error()

    def _set_alarm(self, ask_id: str, seconds: float) -> Callable[[], None]:
        """Have the session's own loop end the ask; gives what calls that off, from any thread."""
        loop = asyncio.get_running_loop()

        def ring() -> None:
            with suppress(AskError):
                self._expire(ask_id, "expiry")

        timer = loop.call_later(seconds, ring)

        def call_off() -> None:
            # That loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(timer.cancel)

        return call_off

    def _tell(self, change: Change) -> None:
        with self._lock:
            watchers = tuple(self._watchers)
        for watch in watchers:
            watch.tell(change)

    def _leave(self, watch: Watch) -> None:
        with self._lock, suppress(ValueError):
            self._watchers.remove(watch)


def _check_name(argument: Literal["by", "to"], given: object) -> None:
    if not (isinstance(given, str) and given):
        raise UsageError(argument, given, "somebody's name")
