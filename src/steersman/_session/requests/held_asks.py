"""Opens the asks of calls that are held, in a durable inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from steersman._session.requests.ask_details import ask_details, without_secrets
from steersman.journal import Kind
from steersman.permissions import Ask, CanUseTool
from steersman.ports import Clock, SupportsAwaitAnswer


@dataclass(frozen=True, slots=True)
class HeldInInbox:
    """The port `HeldAsks` over a durable inbox."""

    inbox: SupportsAwaitAnswer
    note: Callable[..., None]
    session_id: Callable[[], str]
    turn: Callable[[], str | None]
    clock: Clock
    redact: Callable[[bytes], bytes]
    report: Callable[[str, BaseException | str], None]
    is_repeatable: Callable[[CanUseTool], bool]
    """Whether a call may run twice."""
    shown: Callable[[Ask], None]
    """Called with each ask that is opened."""

    def open(self, payload: CanUseTool, answered: Callable[[], None]) -> Ask:
        """Put the ask into the inbox, without known secrets; `answered` is called in this loop."""
        loop = asyncio.get_running_loop()
        ask = Ask(
            id=payload.tool_use_id,
            session=self.session_id(),
            payload=payload,
            created=self.clock(),
            turn=self.turn(),
            is_repeatable=self.is_repeatable(payload),
        )
        self.note(Kind.ASKED, **ask_details(ask, self.redact))
        self.shown(ask)
        kept = without_secrets(ask, self.redact)
        self.inbox.await_answer(
            kept,
            lambda: _in(loop, answered),
            lambda error: _in(loop, lambda: self.report("inbox", error)),
        )
        return kept

    def leave(self, ask: Ask) -> None:
        """Stop waiting: the ask stays as it is."""
        self.inbox.close_ask(ask, "its request follows", may_return=True)

    def close(self, ask: Ask, reason: str) -> None:
        """Close the ask for good."""
        self.inbox.close_ask(ask, reason)


def _in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call the function in the session's event loop, which may be closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function)
