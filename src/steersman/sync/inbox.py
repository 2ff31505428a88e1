"""`Inbox` for synchronous code: asks of sessions, listed, answered and watched without `await`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from typing import Any

from steersman._portal.portal import shared_portal
from steersman.errors import SteersmanError
from steersman.inbox import AskOutcome, Change, Settle, StoredInbox, Watch
from steersman.inbox import Inbox as AsyncInbox
from steersman.permissions import Ask, AskKind
from steersman.sync.items import Items


class Inbox:
    """Keeps asks until they are answered. Pass it to agents of `steersman.sync` as `inbox=`.

    Made from an inbox of the async API: `Inbox(SqliteStore(path).inbox())`. Without one, it is an
    inbox in memory, whose asks are denied after `expires_after` seconds.
    """

    def __init__(
        self,
        inbox: AsyncInbox | StoredInbox | None = None,
        *,
        expires_after: float | None = None,
    ) -> None:
        self.inbox = AsyncInbox(expires_after=expires_after) if inbox is None else inbox
        """The inbox of the async API, which sessions use."""
        self._portal = shared_portal()

    # For sessions: the port `Asks`

    def open(self, ask: Ask, settle: Settle) -> None:
        """Keep `ask` until it is answered; then call `settle` with the answer and its author."""
        self.inbox.open(ask, settle)

    def close(self, ask_id: str, reason: str, *, may_return: bool = False) -> None:
        """Close an ask whose session no longer waits for the answer."""
        self.inbox.close(ask_id, reason, may_return=may_return)

    # For the program that shows and answers asks

    def list(
        self,
        *,
        session: str | None = None,
        kind: AskKind | None = None,
        assignee: str | None = None,
    ) -> list[Ask]:
        """Return the open asks, the oldest first."""
        return self._portal.call(self.inbox.list, session=session, kind=kind, assignee=assignee)

    def get(self, ask_id: str, *, session: str | None = None) -> Ask:
        """Return an open ask. Raises `AskNotFound`, `AlreadyAnswered` or `AskGone`.

        Raises `UsageError` if several sessions have an ask with this id and `session` is not given.
        """
        return self._portal.call(self.inbox.get, ask_id, session=session)

    def answer(
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
        return self._portal.call(
            self.inbox.answer, ask_id, answer, by=by, session=session, seen=seen
        )

    def answer_many(
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
        return self._portal.call(self.inbox.answer_many, answers, answer, by=by, session=session)

    def expire(
        self, ask_id: Ask | str, *, by: str = "expiry", session: str | None = None
    ) -> AskOutcome:
        """End an ask without an answer: it is denied, declined or cancelled, as its kind needs."""
        return self._portal.call(self.inbox.expire, ask_id, by=by, session=session)

    def delegate(self, ask_id: Ask | str, to: str, *, session: str | None = None) -> Ask:
        """Assign an ask to `to`; others can still answer it."""
        return self._portal.call(self.inbox.delegate, ask_id, to, session=session)

    def watch(self) -> Iterator[Change]:
        """Return an iterator over the changes from now on; it begins with the open asks."""
        return Items(self._portal, self.inbox.watch, leave=_leave)


def _leave(watch: AsyncIterator[Change]) -> Coroutine[Any, Any, None]:
    assert isinstance(watch, Watch)
    return watch.aclose()
