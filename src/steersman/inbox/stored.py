"""StoredInbox: asks in a database, which are answered from any process, also after a restart.

Other processes open and answer asks too, so only the database knows which are open.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from steersman._json import is_sequence
from steersman.errors import AskNotFound, SteersmanError, StoreError, UsageError
from steersman.inbox.changes import (
    AskOutcome,
    Watch,
    answer_each,
    check_answer,
    check_expires_after,
    check_name,
    seen_of,
)
from steersman.inbox.keeper import AskKeeper, Waiting
from steersman.inbox.rows import AskRow, AskRows, Ending, ReadyStore
from steersman.permissions import Ask, AskKind, QuestionAnswer
from steersman.permissions.asks import Answer
from steersman.permissions.json_form import answer_to_json

CLOSED = "Denied: the store of the inbox is closed."


class StoredInbox:
    """An inbox in a store: `SqliteStore(path).inbox()`. Pass it to agents as `inbox=`.

    Asks are stored before they are shown, and stay when their process ends. The next process of the
    conversation finds the answer; it is used once. The methods raise `StoreError` if the store
    cannot be reached.
    """

    def __init__(
        self,
        store: ReadyStore,
        rows: AskRows,
        keeper: AskKeeper,
        *,
        path: Path | None = None,
        expires_after: float | None = None,
    ) -> None:
        check_expires_after(expires_after)
        self._owners: dict[str, tuple[Callable[[], bool], str]] = {}
        """Whether a session of this process still has its conversation, and the token of its
        lease, by session."""
        self._rows = rows
        self._keeper = keeper
        self._expires_after = expires_after
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], Waiting] = {}
        """By session and id of the request of this process."""
        self.store = store
        """Where the asks are, and the leases and turns: sessions with this inbox are durable."""
        self.path = path
        """The file that the asks are in; None if a database server has them."""

    @property
    def faults(self) -> Mapping[str, str]:
        """What fails now in the background, with its last error; it is tried again."""
        return self._keeper.faults

    # For sessions: the ports `DurableAsks` and `SupportsAwaitAnswer`

    def own(self, session: str, is_owner: Callable[[], bool] | None, token: str = "") -> None:
        """Use answers for the asks of a session only while `is_owner` returns True.

        It is called from any thread. `None` ends that. Writes about its asks name the `token` of
        its lease.
        """
        with self._lock:
            if is_owner is None:
                self._owners.pop(session, None)
            else:
                self._owners[session] = is_owner, token

    def open(self, ask: Ask, settle: Callable[[Any, str], None]) -> None:
        """Store `ask`; call `settle` with the answer and its author when there is one."""
        self.keep(ask, settle, _ignore)

    def keep(
        self,
        ask: Ask,
        settle: Callable[[Any, str], None],
        report: Callable[[BaseException], None],
    ) -> None:
        """As `open`. If the ask cannot be stored, it waits, and `report` is called once."""
        if self._keeper.is_closed:
            settle(ask.refusal(CLOSED), "inbox")
            return
        key = ask.session, ask.id

        def settled(answer: Any, by: str) -> None:
            with self._lock:
                self._waiting.pop(key, None)
            settle(answer, by)

        waiting = self._new(ask, settled, report)
        with self._lock:
            self._waiting[key] = waiting
        self._keeper.keep(waiting)

    def await_answer(
        self,
        ask: Ask,
        answered: Callable[[], None],
        report: Callable[[BaseException], None],
    ) -> None:
        """As `keep`, but `answered` is called once there is an answer, which stays unused."""
        if self._keeper.is_closed:
            # The request that follows is refused.
            answered()
            return
        waiting = self._new(ask, lambda _answer, _by: answered(), report)
        waiting.only_looks = True
        with self._lock:
            self._waiting[ask.session, ask.id] = waiting
        self._keeper.keep(waiting)

    def _new(
        self, ask: Ask, settle: Callable[[Any, str], None], report: Callable[[BaseException], None]
    ) -> Waiting:
        waiting = Waiting(ask, settle, report, self._expires_after, _running_loop())
        waiting.is_owner, waiting.token = self._owners.get(ask.session, (_always, ""))
        return waiting

    def close(self, ask_id: str, reason: str, *, may_return: bool = False) -> None:
        """Close the asks of this process with this id."""
        with self._lock:
            found = [each for key, each in self._waiting.items() if key[1] == ask_id]
        for waiting in found:
            self.close_ask(waiting.ask, reason, may_return=may_return)

    def close_ask(self, ask: Ask, reason: str, *, may_return: bool = False) -> None:
        """Close `ask`; with `may_return` only this process stops waiting for it."""
        with self._lock:
            waiting = self._waiting.pop((ask.session, ask.id), None)
        if waiting is not None and waiting.close(may_return=may_return):
            self._keeper.let_go(waiting, reason)

    # For the program that shows and answers asks

    async def list(
        self,
        *,
        session: str | None = None,
        kind: AskKind | None = None,
        assignee: str | None = None,
    ) -> list[Ask]:
        """Return the open asks of all processes, the oldest first."""
        return [
            row.ask
            for row in await self._rows.open_ones()
            if session in (None, row.ask.session)
            and kind in (None, row.ask.kind)
            and assignee in (None, row.ask.assignee)
        ]

    async def get(self, ask_id: str, *, session: str | None = None) -> Ask:
        """Return an open ask. Raises `AskNotFound`, `AlreadyAnswered` or `AskGone`.

        Raises `UsageError` if several sessions have an ask with this id and `session` is not given.
        """
        return (await _open_row(self._rows, ask_id, session)).ask

    async def answer(
        self,
        ask_id: Ask | str,
        answer: object,
        *,
        by: str = "somebody",
        session: str | None = None,
        seen: str | None = None,
    ) -> AskOutcome:
        """Answer an ask, as `Inbox.answer`; returns when the answer is stored.

        The session that waits receives it a moment later; if none waits, the next one that opens
        the ask again.
        """
        check_name("by", by)
        row = await _open_row(self._rows, ask_id, session)
        check_answer(row.ask, answer, seen_of(ask_id, seen))
        text = answer_to_json(_listed(answer)).decode()
        return await _end(self._rows, row, "answered", by, text)

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
        row = await _open_row(self._rows, ask_id, session)
        return await _end(self._rows, row, "expired", by, "")

    async def delegate(self, ask_id: Ask | str, to: str, *, session: str | None = None) -> Ask:
        """Assign an ask to `to`; others can still answer it."""
        check_name("to", to)
        row = await _open_row(self._rows, ask_id, session)
        row = await self._rows.delegate(row.number, to)
        if row.state != "open":
            raise row.error()
        return row.ask

    def watch(self) -> Watch:
        """Return an async iterator over the changes of all processes; it begins with open asks."""
        if self._keeper.is_closed:
            raise StoreError("the store of this inbox is closed")
        watch = Watch(self._keeper.leave)
        self._keeper.watch(watch)
        return watch


async def _open_row(rows: AskRows, ask_id: Ask | str, session: str | None) -> AskRow:
    """Return the row of an open ask. An id of several sessions could mean the wrong one."""
    if isinstance(ask_id, Ask):
        own = ask_id.session
        if session not in (None, own):
            raise UsageError("session", session, f"{own!r}, the session of this ask")
        ask_id, session = ask_id.id, own
    found = await rows.find(ask_id, session)
    if len(found) > 1:
        sessions = ", ".join(repr(row.ask.session) for row in found)
        raise UsageError("session", None, f"one of {sessions}: each has an ask {ask_id!r}")
    if not found:
        raise AskNotFound(ask_id)
    if found[0].state != "open":
        raise found[0].error()
    return found[0]


async def _end(rows: AskRows, row: AskRow, how: Ending, by: str, answer: str) -> AskOutcome:
    mark = uuid4().hex
    ended = await rows.end(row.number, how, by, answer, mark)
    outcome = ended.outcome()
    if ended.mark != mark or outcome is None:
        raise ended.error()
    return outcome


def _listed(answer: object) -> Answer:
    """Return the answer in the form that is stored; `check_answer` has accepted it."""
    if isinstance(answer, QuestionAnswer):
        return [answer]
    return cast("Answer", [*answer] if is_sequence(answer) else answer)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _always() -> bool:
    return True


def _ignore(_error: BaseException) -> None:
    """Report nothing: the log has it."""
