"""The leases and turns of a store, for sessions of any event loop.

The work is done in the thread that keeps the asks of the store.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from steersman.errors import UsageError
from steersman.inbox.ready import ready_conversations
from steersman.inbox.rows import AskRow
from steersman.inbox.work_rows import WorkRows
from steersman.permissions import Allow, Deny, DialogAnswer, ElicitationAnswer
from steersman.ports import Conversation, StoredAsk, StoredTurn

if TYPE_CHECKING:
    from steersman.inbox.keeper import AskKeeper

__all__ = ["StoredWork"]

T = TypeVar("T")


class StoredWork:
    """The port `DurableWork` over the thread of a store."""

    def __init__(self, keeper: AskKeeper) -> None:
        self._keeper = keeper

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        """Take the lease, and return the conversation as it was; None if it is new."""
        _check_seconds(seconds)
        return await self._call(
            lambda work: work.take(
                session, key=key, owner=owner, token=token, machine=machine, seconds=seconds
            )
        )

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        """Have the lease for `seconds` from now on. Returns False if it is lost."""
        _check_seconds(seconds)
        return await self._call(lambda work: work.renew(session, token, seconds))

    async def release(self, session: str, token: str) -> None:
        """Give the lease up."""
        await self._call(lambda work: work.release(session, token))

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        """Store a turn before its prompt is sent."""
        await self._call(lambda work: work.begin(session, token, turn))

    async def settle(self, session: str, token: str, uuid: str, state: str, outcome: str) -> bool:
        """Write that a turn is `parked` or `settled`."""
        if state not in {"parked", "settled"}:
            raise UsageError("state", state, "parked or settled")
        return await self._call(lambda work: work.settle(session, token, uuid, state, outcome))

    async def unsettled(self, session: str) -> list[StoredTurn]:
        """Return the turns that are open or parked, in the order in which they were begun."""
        return await self._call(lambda work: work.unsettled(session))

    def ready(self) -> AsyncGenerator[Conversation]:
        """Yield the conversations that can be continued, as `ready()` of the store does."""
        return ready_conversations(self._keeper)

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        """Return the asks of a turn that are open, or have an unused answer; the oldest first."""
        rows = await self._keeper.call(lambda rows: rows.of_turn(session, turn))
        return [_stored(row) for row in rows]

    async def _call(self, call: Callable[[WorkRows], Awaitable[T]]) -> T:
        return await self._keeper.call(lambda rows: call(rows.work))


def _check_seconds(given: float) -> None:
    if not 0 < given < math.inf:
        raise UsageError("seconds", given, "a number above 0")


def _stored(row: AskRow) -> StoredAsk:
    ask = row.ask
    found = StoredAsk(
        ask.id,
        ask.kind,
        row.state,
        ask.tool_name,
        getattr(ask.payload, "tool_use_id", None),
        ask.agent,
        ask.tool_input,
        row.by,
    )
    if row.state == "open":
        return found
    # What is sent for the answer; one that cannot be read denies.
    match ask.response(row.reply()):
        case Allow(updated_input=changed):
            same = changed is None or changed == ask.tool_input
            return replace(found, decision="allow", updated_input=None if same else changed)
        case Deny(message=reason):
            return replace(found, decision="deny", reason=reason)
        case ElicitationAnswer(action="accept") | DialogAnswer(behavior="completed"):
            return replace(found, decision="allow")
        case _:
            return replace(found, decision="deny")
