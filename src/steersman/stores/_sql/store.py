"""What every store with a database has: four attributes, none of which is reached through another.

`asks`, `work` (leases and turns), `journals` and `fleet` (workers and budgets) are tables. Sessions
are methods of the store itself: it is a `SessionStore`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from steersman.stores._sql.database import Database, Transaction
from steersman.stores._sql.sessions import SessionTable

if TYPE_CHECKING:
    from steersman.inbox.keeper import AskKeeper
    from steersman.inbox.stored import StoredInbox
    from steersman.journal import Entry
    from steersman.ports import Conversation
    from steersman.stores._sql.asks import AskTable
    from steersman.stores._sql.fleet import FleetTable
    from steersman.stores._sql.journals import JournalTable, StoredJournal
    from steersman.stores._sql.work import WorkTable

REST = 30.0
"""Seconds without work after which the connections for sessions are closed: a turn takes a while
between two entries, and the last one that closes a file writes its log back."""


class SqlStore(SessionTable):
    """What all stores with a database have. What a store is not asked for is not loaded."""

    def __init__(self, database: Database, sessions: Database, file: Path | None = None) -> None:
        super().__init__(sessions)
        self._database = database
        self._file = file

    async def __aenter__(self) -> Self:
        await self._sessions.read(_nothing)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, after the work that is waiting. May be called again."""
        await self._database.aclose()
        await self._sessions.aclose()

    def inbox(self, *, expires_after: float | None = None) -> StoredInbox:
        """Return an inbox whose asks are in this store: any process that has it can answer them.

        After `expires_after` seconds an ask that this inbox has opened is denied.
        """
        from steersman.inbox.stored import StoredInbox  # noqa: PLC0415 - only an inbox needs it

        return StoredInbox(
            self, self.asks, self._keeper, path=self._file, expires_after=expires_after
        )

    @cached_property
    def asks(self) -> AskTable:
        """The rows of asks, below an inbox."""
        from steersman.stores._sql.asks import AskTable  # noqa: PLC0415 - as above

        return AskTable(self._database)

    @property
    def work(self) -> WorkTable:
        """The leases and turns of conversations: the port `DurableWork`."""
        return self._work

    @cached_property
    def _work(self) -> WorkTable:
        # Not `work` itself: for pyright a cached property is none of a protocol.
        from steersman.stores._sql.work import WorkTable  # noqa: PLC0415 - as above

        return WorkTable(self._database, self.asks)

    @cached_property
    def fleet(self) -> FleetTable:
        """The workers and budgets of a fleet."""
        from steersman.stores._sql.fleet import FleetTable  # noqa: PLC0415 - as above

        return FleetTable(self._database)

    @cached_property
    def journals(self) -> JournalTable:
        """The entries of journals, by conversation and number."""
        from steersman.stores._sql.journals import JournalTable  # noqa: PLC0415 - as above

        return JournalTable(self._database)

    def ready(self) -> AsyncGenerator[Conversation]:
        """Yield the conversations that can be continued, now and later, without an end.

        These have unsettled turns and no owner, and an answer came, or they wait for none. Each is
        yielded again only after a change. Opening one raises `SessionInUse` if another process was
        faster.
        """
        return self.work.ready()

    def sink(
        self, conversation: str | Conversation, *, memory: int = 32 * 1024 * 1024
    ) -> StoredJournal:
        """Return a sink that writes the journal of a conversation: `Agent(journal=...)`.

        While the store cannot be reached, entries of up to `memory` bytes wait for it.
        """
        from steersman.stores._sql.journals import StoredJournal, name_of  # noqa: PLC0415 - as above

        return StoredJournal(self.journals, name_of(conversation), memory)

    def entries(self, conversation: str | Conversation, *, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield the entries that a sink of any process has written, after number `after`."""
        from steersman.stores._sql.journals import name_of, stored_entries  # noqa: PLC0415 - as above

        return stored_entries(self.journals, name_of(conversation), after)

    def follow(self, conversation: str | Conversation, *, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield the entries as `entries` does, and then new ones as they come, without an end."""
        from steersman.stores._sql.journals import follow_entries, name_of  # noqa: PLC0415 - as above

        return follow_entries(self.journals, name_of(conversation), after)

    @cached_property
    def _keeper(self) -> AskKeeper:
        from steersman.inbox.keeper import AskKeeper  # noqa: PLC0415 - as above

        return AskKeeper(self._database, self.asks)


async def _nothing(_transaction: Transaction) -> None:
    """Open the database, and see that it can be used."""
