"""Questions that wait for somebody: handed to an inbox, answered later, by whoever it is.

Nothing of ours runs meanwhile. An answer is written down before it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from steersman.errors import UsageError
from steersman.journal import Kind
from steersman.permissions import Ask, Payload
from steersman.ports import Asks, Clock

__all__ = ["DEFERRED", "Deferred", "InboxForwarder", "SendAnswer"]


class Deferred(Enum):
    """The answer will come by itself."""

    DEFERRED = "later"


DEFERRED: Final = Deferred.DEFERRED

SendAnswer = Callable[[str, Any], None]
"""Sends the answer to the request of that id."""

Settled = Callable[[Ask, Any, str], Any]
"""Makes the response of an answer and who gave it, and writes it down."""


class InboxForwarder:
    """Puts the questions of one session into an inbox."""

    def __init__(
        self,
        inbox: Asks,
        note: Callable[..., None],
        turn: Callable[[], str | None],
        clock: Clock,
    ) -> None:
        self._inbox = inbox
        self._note = note
        self._turn = turn
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[str] = set()

    def put(
        self,
        request_id: str,
        payload: Payload,
        session_id: str,
        settled: Settled,
        reply: SendAnswer,
    ) -> Deferred:
        """Have the question wait; `reply` gets the response, in this event loop."""
        ask = Ask(
            id=request_id,
            session=session_id,
            payload=payload,
            created=self._clock(),
            turn=self._turn(),
        )

        def settle(answer: Any, by: str) -> None:
            self._open.discard(request_id)
            reply(request_id, settled(ask, answer, by))

        self._loop = asyncio.get_running_loop()
        self._note(Kind.ASKED, **_told(ask))
        self._open.add(request_id)
        self._inbox.open(ask, lambda answer, by: self._in_loop(settle, answer, by))
        return DEFERRED

    def withdraw(self, request_id: str, reason: str) -> None:
        """Nobody waits for this answer any more."""
        if request_id in self._open:
            self._open.discard(request_id)
            self._inbox.close(request_id, reason)

    def _in_loop(self, settle: Callable[[Any, str], None], answer: Any, by: str) -> None:
        """Answer now if this is the session's own loop, so that who answers knows it is sent."""
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            settle(answer, by)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(settle, answer, by)


def response_of(ask: Ask, answer: Any) -> Any:
    """The answer as it goes on the wire; one that does not fit lets nothing through."""
    try:
        return ask.response(answer)
    except UsageError:
        return ask.refusal("Denied: the answer was not one that fits the question.")


def _told(ask: Ask) -> dict[str, Any]:
    """What the journal says of an ask; its payload stands there already, in the CLI's line."""
    tool_use_id = getattr(ask.payload, "tool_use_id", None)
    told = {
        "id": ask.id,
        "ask": ask.kind,
        "tool": ask.tool_name,
        "tool_use_id": tool_use_id,
        "agent": ask.agent,
        "turn": ask.turn,
    }
    return {name: value for name, value in told.items() if value}
