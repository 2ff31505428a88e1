"""What takes the place of `durable` in a session without a store."""

from __future__ import annotations

from collections.abc import Callable

from steersman.ports import Durability, StoredAsk, StoredTurn, Transport


class NoDurability:
    """Keeps nothing: the session has no store."""

    keeps_turns = False

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


def not_durable(_host: object) -> Durability:
    """Make what keeps nothing."""
    return NoDurability()
