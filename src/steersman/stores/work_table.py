"""The tables of conversations and turns: what is read and written, for every database with SQL.

A lease is part of the row of its conversation. Every write names the token of the lease, and is
made only if that lease is valid at that moment, by the time of the database.
"""

from __future__ import annotations

from steersman.ports import Conversation, StoredAsk, StoredTurn

__all__ = ["WorkTable"]


class WorkTable:
    """The port `DurableWork` over a database."""

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        """Take the lease, and return the conversation as it was; None if it is new."""
        raise NotImplementedError

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        """Have the lease for `seconds` from now on. Returns False if it is lost."""
        raise NotImplementedError

    async def release(self, session: str, token: str) -> None:
        """Give the lease up."""
        raise NotImplementedError

    async def begin(self, session: str, token: str, turn: StoredTurn) -> StoredTurn:
        """Store a turn, and return it as it is stored now. Raises `LeaseLost`."""
        raise NotImplementedError

    async def settle(self, session: str, token: str, uuid: str, state: str, outcome: str) -> bool:
        """Write that a turn is `parked` or `settled`."""
        raise NotImplementedError

    async def unsettled(self, session: str) -> list[StoredTurn]:
        """Return the turns that are open or parked, in the order in which they were begun."""
        raise NotImplementedError

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        """Return the asks of a turn that are open, or have an unused answer."""
        raise NotImplementedError
