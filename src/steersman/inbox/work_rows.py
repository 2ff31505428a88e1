"""The ports between a store's front and its rows of conversations, turns and journals.

All methods are called in one event loop. Each raises `StoreError` if the database cannot be
reached; a call that failed so can be made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from steersman.ports import Conversation, StoredTurn

__all__ = ["JournalRows", "Ready", "WorkRows"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A conversation that can be continued."""

    conversation: Conversation
    """Without turns, which are read later."""
    state: tuple[object, ...]
    """Is another one after each change of its turns and asks, and after a lease has expired."""


class WorkRows(Protocol):
    """The rows of conversations and turns in one database: see `DurableWork`."""

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        """Take the lease, and return the conversation as it was; None if it is new."""
        ...

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        """Have the lease for `seconds` from now on. Returns False if it is lost."""
        ...

    async def release(self, session: str, token: str) -> None:
        """Give the lease up."""
        ...

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        """Store a turn. Raises `LeaseLost`."""
        ...

    async def settle(self, session: str, token: str, uuid: str, state: str, outcome: str) -> bool:
        """Write that a turn is `parked` or `settled`."""
        ...

    async def unsettled(self, session: str) -> list[StoredTurn]:
        """Return the turns that are open or parked, in the order in which they were begun."""
        ...

    async def ready(self) -> tuple[list[Ready], float | None]:
        """Return the conversations that can be continued, those with the oldest change first.

        Also returns in how many seconds the next lease of an unsettled one ends; None for never.
        """
        ...


class JournalRows(Protocol):
    """The entries of journals in one database, as text; a number is stored once."""

    async def append(self, conversation: str, entries: Sequence[tuple[int, str]]) -> int:
        """Store entries with their numbers. One whose number is there already is left out.

        Returns how many were left out because another entry has their number.
        """
        ...

    async def last_seq(self, conversation: str) -> int:
        """Return the greatest number; 0 if there is none."""
        ...

    async def read(self, conversation: str, after: int, most: int) -> list[tuple[int, str]]:
        """Return the entries after number `after` with their numbers, in order, `most` at most."""
        ...
