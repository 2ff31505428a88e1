"""What takes the place of `durable` in a session without a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from steersman.errors import UsageError
from steersman.hooks.registry import Registered
from steersman.permissions import Ask, CanUseTool, Payload
from steersman.ports import Durability, HeldCalls, StoredAsk, StoredTurn, Transport

PARKING = 10.0
"""Seconds that a session takes to park at most, before its CLI is killed."""


class NoHeldCalls:
    """Holds no calls."""

    held: tuple[Ask, ...] = ()

    def hooks(self, given: Iterable[Registered]) -> list[Registered]:
        """Return the hooks as they are."""
        return [*given]

    async def resumed(self, uuid: str) -> Sequence[CanUseTool]:
        """Return none: no call was deferred."""
        del uuid
        return ()

    def prompt_sent(self) -> None:
        """Do nothing."""

    def was_shown(self, payload: Payload) -> bool:
        """Return False: an ask is opened when the CLI requests the permission."""
        del payload
        return False

    requested = was_shown

    def withdrawn(self, tool_use_id: str, reason: str) -> None:
        """Do nothing."""

    def turn_settled(self) -> None:
        """Do nothing."""


NO_HELD_CALLS: HeldCalls = NoHeldCalls()


class NoDurability:
    """Keeps nothing: the session has no store."""

    keeps_turns = False
    holding = NO_HELD_CALLS

    def transport(self, inner: Transport) -> Transport:
        """Return the transport as it is."""
        return inner

    async def take(
        self, session_id: str | None, is_ending: Callable[[], bool] = bool, *, wait: float = 0.0
    ) -> None:
        """Do nothing: a lock on the CLI's file decides who has the conversation."""

    async def begin(self, turn: StoredTurn) -> None:
        """Do nothing."""

    def settled(self, uuid: str, outcome: str) -> None:
        """Do nothing."""

    async def unsettled(self) -> list[StoredTurn]:
        """Return none."""
        return []

    async def asks_of(self, uuid: str) -> list[StoredAsk]:
        """Return none."""
        del uuid
        return []

    async def close(self) -> None:
        """Do nothing."""


class NoParking:
    """Parks nothing: the asks of the session end with it."""

    waits_for: tuple[str, ...] = ()

    def __init__(self, inbox: object, close: Callable[[], None]) -> None:
        self._inbox = inbox
        self.close = close

    def watch(self) -> None:
        """Do nothing."""

    async def park(self, timeout: float) -> None:
        """Raise `UsageError`."""
        del timeout
        raise UsageError(
            "inbox",
            self._inbox,
            "an inbox in a store: other asks end with their session",
            hint='pass inbox=SqliteStore("work.db").inbox(), or use aclose()',
        )


def not_durable(_host: object) -> Durability:
    """Make what keeps nothing."""
    return NoDurability()
