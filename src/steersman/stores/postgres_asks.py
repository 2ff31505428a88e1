"""The asks of a PostgreSQL database: `NOTIFY` with every write, `LISTEN` while asks wait.

Times are those of the server. A write whose confirmation was lost is made again: marks in the rows
make sure that it counts once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from steersman.errors import StoreError
from steersman.stores.ask_table import AskTable
from steersman.stores.databases import Run
from steersman.stores.postgres_connections import Connection, Connections
from steersman.stores.postgres_tables import migrate

__all__ = ["postgres_asks"]

T = TypeVar("T")

NOW = "extract(epoch FROM clock_timestamp())::double precision"
COUNT = "UPDATE steersman_ask_changes SET last = last + 1"
# The notification is sent when the transaction is committed.
COUNTED = "SELECT last, pg_notify('steersman_asks', '') FROM steersman_ask_changes"
FIRST_RETRY, LAST_RETRY = 0.05, 1.0
"""Seconds until a lost connection is made again."""
DOUBT = (0.1, 0.5)
"""Seconds after which a write is made again whose confirmation was lost."""


@dataclass(frozen=True, slots=True)
class Looks:
    """When the table is looked at although no notification came: it may have been missed."""

    early: float = 5.0
    """Seconds between two looks after a connection was made."""
    until: float = 60.0
    """For how many seconds that is early."""
    late: float = 30.0


def postgres_asks(
    url: str, timeout: float, connections: int, looks: Looks | None = None
) -> AskTable:
    """Return the asks at `url`; one of the `connections` is for notifications."""
    made = Connections(url, timeout, connections - 1)
    return AskTable(_PostgresAsks(made, looks or Looks()))


class _PostgresAsks:
    """An `AskDatabase` in PostgreSQL."""

    returns_rows = True

    def __init__(self, connections: Connections, looks: Looks) -> None:
        self._connections = connections
        self._looks = looks
        self._is_migrated = False

    async def read(self, work: Callable[[Run], Awaitable[T]]) -> T:
        async def reading(connection: Connection) -> T:
            await self._prepare(connection)
            return await work(_runner(connection))

        return await self._connections.run(reading)

    async def write(self, work: Callable[[Run], Awaitable[T]], *, is_vital: bool) -> T:
        del is_vital  # every commit survives a loss of power, if the server is set up for it
        is_in_doubt = False

        async def writing(connection: Connection) -> T:
            nonlocal is_in_doubt
            await self._prepare(connection)
            # If this raises, the connection is closed, and the server rolls back.
            found = await work(_runner(connection, begins=True))
            # If the connection is lost from here on, only the server knows what became of it.
            is_in_doubt = True
            await connection.execute("COMMIT", prepare=False)
            return found

        for wait in (*DOUBT, None):
            try:
                return await self._connections.run(writing)
            except StoreError:
                if not is_in_doubt:
                    raise
            if wait is not None:
                await asyncio.sleep(wait)
        raise StoreError(
            f"{self._connections.name} was lost during a commit, and it is not known whether"
            " the ask was changed",
            hint="look at it again when the server is back: inbox.get(), or `steersman asks show`",
        )

    async def next_change(self, run: Run, *also: str) -> int:
        # One way to the server and back; a transaction begins with it.
        ((change, _),) = await run("; ".join((COUNT, *also, COUNTED)))
        return int(change)

    async def signal(self, changed: Callable[[], None]) -> None:
        retry = FIRST_RETRY
        while True:
            try:
                async with await self._connections.connect() as connection:
                    await connection.execute("LISTEN steersman_asks")
                    retry = FIRST_RETRY
                    # What came before the connection was made, or while it was lost.
                    changed()
                    await self._receive(connection, changed)
            except (psycopg.Error, StoreError, OSError):
                changed()
                await asyncio.sleep(retry)
                retry = min(2 * retry, LAST_RETRY)

    async def _receive(self, connection: Connection, changed: Callable[[], None]) -> None:
        """Call `changed` after each notification, and now and then without one, until it fails."""
        clock, looks = asyncio.get_running_loop().time, self._looks
        early_until = clock() + looks.until
        while True:
            wait = looks.early if clock() < early_until else looks.late
            async for _ in connection.notifies(timeout=wait, stop_after=1):
                break
            else:
                # Silence: a connection can be dead without an error.
                await self._check_alive(connection)
            changed()

    async def _check_alive(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._connections.timeout):
                await connection.execute("SELECT 1")
        except TimeoutError:
            # Not by the driver's own way, which waits for the server.
            connection.pgconn.finish()
            raise StoreError(f"{self._connections.name} does not answer") from None

    async def aclose(self) -> None:
        await self._connections.close()

    async def _prepare(self, connection: Connection) -> None:
        if not self._is_migrated:
            await migrate(connection, self._connections.name)
            self._is_migrated = True


def _runner(connection: Connection, *, begins: bool = False) -> Run:
    """Return what runs statements; if it `begins` a transaction, with the first one."""
    is_begun = not begins

    async def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        nonlocal is_begun
        ours = statement.replace("?", "%s").replace(":now", NOW).replace(":lease", NOW)
        if values:
            if not is_begun:
                await connection.execute("BEGIN", prepare=False)
            cursor = await connection.execute(ours.encode(), values)
        else:
            # Several statements at once cannot be prepared, nor have values.
            begin = "" if is_begun else "BEGIN; "
            cursor = await connection.execute(f"{begin}{ours}".encode(), prepare=False)
            while cursor.nextset():
                continue
        is_begun = True
        return [] if cursor.description is None else await cursor.fetchall()

    return run
