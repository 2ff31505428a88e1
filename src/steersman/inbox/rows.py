"""The port between an inbox and the database that keeps its asks: one row per ask.

A row is open, then answered, expired or closed. An answer, and an expiry, is used once: by the
session that receives it. Every write gets the next change number, in the order of the commits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

from steersman.errors import AskGone, SteersmanError, UsageError
from steersman.inbox.changes import EXPIRED, AskOutcome, Change
from steersman.permissions import Allow, Ask, Deny, DialogAnswer, ElicitationAnswer
from steersman.permissions.asks import Answer
from steersman.permissions.json_form import answer_from_json
from steersman.ports import Conversation, StoredAsk, SupportsWork

Ending = Literal["answered", "expired"]

STRANGE = "its row cannot be read: a later release of steersman wrote it, or it was removed"
UNREADABLE = "Denied: the stored answer cannot be read."


@dataclass(frozen=True, slots=True)
class AskRow:
    """An ask as it is stored."""

    number: int
    ask: Ask
    """With the id, the expiry and the assignee of the row."""
    state: str
    """`open`, or how it ended; or a word of a later release."""
    by: str = ""
    answer: str = ""
    """JSON; empty if there is none."""
    mark: str = ""
    """What the writer of the answer gave as its own mark."""
    used_mark: str | None = None
    """The mark of the session that has used the answer; None as long as it is unused."""
    opened: int = 0
    """The number of the change that opened it."""
    delegated: int = 0
    ended: int = 0
    last: int = 0
    """The number of the last change, which may also be the use of the answer."""

    @property
    def can_be_used(self) -> bool:
        """Whether a session may still take the answer."""
        return self.state in ("answered", "expired") and self.used_mark is None

    def outcome(self) -> AskOutcome | None:
        """Return how the ask ended; None if it is open, or in a state of a later release."""
        match self.state:
            case "answered" | "closed":
                return AskOutcome(self.ask.id, self.state, self.by, self._read())
            case "expired":
                return AskOutcome(self.ask.id, self.state, self.by, self.ask.refusal(EXPIRED))
            case _:
                return None

    def error(self) -> SteersmanError:
        """Return the error for a caller that answers an ask which is not open."""
        outcome = self.outcome()
        return AskGone(self.ask.id, STRANGE) if outcome is None else outcome.error()

    def reply(self) -> object:
        """Return the answer for the session: a refusal if it cannot be read, or does not fit."""
        if self.state == "expired":
            return self.ask.refusal(EXPIRED)
        answer = self._read()
        if answer is None:
            return self.ask.refusal(UNREADABLE)
        try:
            self.ask.response(answer)
        except UsageError:
            return self.ask.refusal(UNREADABLE)
        return answer

    def changes(self, since: int) -> list[tuple[int, Change]]:
        """Return the changes of this row after number `since`, each with its number.

        A row that was answered as it was opened never waits.
        """
        found: list[tuple[int, Change]] = []
        if self.ended != self.opened:
            found.append((self.opened, Change("opened", self.ask)))
        if self.delegated:
            found.append((self.delegated, Change("delegated", self.ask)))
        outcome = self.outcome()
        if outcome is not None:
            found.append((self.ended, Change(outcome.how, self.ask, outcome)))
        return [(number, change) for number, change in found if number > since]

    def stored(self) -> StoredAsk:
        """Return the ask as a session sees it that continues its turn."""
        ask = self.ask
        found = StoredAsk(
            ask.id,
            ask.kind,
            self.state,
            ask.tool_name,
            getattr(ask.payload, "tool_use_id", None),
            ask.agent,
            ask.tool_input,
            self.by,
        )
        if self.state == "open":
            return found
        # What is sent for the answer; one that cannot be read denies.
        match ask.response(self.reply()):
            case Allow(updated_input=changed):
                same = changed is None or changed == ask.tool_input
                return replace(found, decision="allow", updated_input=None if same else changed)
            case Deny(message=reason):
                return replace(found, decision="deny", reason=reason)
            case ElicitationAnswer(action="accept") | DialogAnswer(behavior="completed"):
                return replace(found, decision="allow")
            case _:
                return replace(found, decision="deny")

    def _read(self) -> Answer | None:
        try:
            return answer_from_json(self.answer) if self.answer else None
        except UsageError:
            return None


class AskRows(Protocol):
    """The rows of asks in one database.

    Each raises `StoreError` if the database cannot be reached; then nothing has changed, or the
    call can be repeated: marks make sure that it counts once. Rows of a later release are left
    alone. Every method that looks at a row lets it expire if its time has come.
    """

    async def open(
        self, ask: Ask, expires_after: float | None, awaited: Collection[int], token: str = ""
    ) -> AskRow | None:
        """Store `ask`, or find it again, and return its row.

        With the `token` of a lease, returns None if the lease of the conversation is lost.

        A row is the same ask if it has its session and digest, and also its `tool_use_id`, or its
        turn and tool; if it is open, or its answer is unused; and if it is not one of the rows
        `awaited`, for which another request of this process waits.
        """
        ...

    async def end(self, number: int, how: Ending, by: str, answer: str, mark: str) -> AskRow:
        """End an ask if it is open. Returns the row; it has the `mark` if this call ended it."""
        ...

    async def close(self, number: int, reason: str, mark: str, token: str = "") -> None:
        """Close an ask for good: it takes no answer any more, and one that it has is not used.

        With the `token` of a lease, only if no other session has the conversation.
        """
        ...

    async def use(self, number: int, mark: str, token: str = "") -> AskRow:
        """Use the answer if it is unused. Returns the row, with the mark that has used it.

        With the `token` of a lease, only if that lease is valid.
        """
        ...

    async def give_back(self, number: int, mark: str) -> None:
        """Make an answer unused again that was used with `mark`, and did not reach its session."""
        ...

    async def delegate(self, number: int, to: str) -> AskRow:
        """Set the assignee, if the ask is open. Returns the row."""
        ...

    async def find(self, ask_id: str, session: str | None) -> list[AskRow]:
        """Return the rows with this id."""
        ...

    async def open_ones(self) -> list[AskRow]:
        """Return the open asks, the oldest first."""
        ...

    async def of_turn(self, session: str, turn: str) -> list[AskRow]:
        """Return the asks of a turn that are open, or have an unused answer; the oldest first."""
        ...

    async def changed(self, since: int) -> tuple[list[AskRow], float | None]:
        """Return the rows with a change after number `since`, the oldest change first.

        Also returns in how many seconds the next open ask expires; None for never.
        """
        ...

    async def last_change(self) -> int:
        """Return the number of the last change of all."""
        ...


@runtime_checkable
class ReadyStore(SupportsWork, Protocol):
    """A store that keeps turns, and reports which conversations can be continued."""

    def ready(self) -> AsyncGenerator[Conversation]:
        """Yield each conversation that can be continued, now and later, without an end."""
        ...
