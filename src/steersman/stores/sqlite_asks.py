"""The asks of a SQLite file: a connection of their own, in the thread that keeps them.

SQLite sends no notifications. While asks wait, its `data_version` is looked at a few times per
second; it changes when another connection has written.

Leases count by the time since the boot of the machine, which cannot be set as the clock can. All
processes of a machine add the same beginning to it, which the file keeps.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from steersman._process import since_boot
from steersman.errors import StoreError
from steersman.ports import Clock
from steersman.stores.ask_table import AskTable
from steersman.stores.databases import Run
from steersman.stores.sqlite_database import SqliteDatabase

__all__ = ["sqlite_asks"]

T = TypeVar("T")

SOON, LATE = 0.05, 0.2
"""Seconds between two looks: after a change, and when nothing has changed for a while."""
SLOWER = 1.1
"""How much longer each wait is than the one before."""
LONGEST_LEASE = 600.0
"""Seconds that a lease of another boot may be valid in this one; its owner can hardly live."""
MOST_BOOTS = 100

SINCE = "SELECT since FROM steersman_boots WHERE boot = ?"

BootClock = Callable[[], tuple[str, float] | None]
"""Returns the id of this boot and the seconds since; None if leases count by the other clock."""


def sqlite_asks(
    path: Path, timeout: float, clock: Clock = time.time, boot: BootClock | None = None
) -> AskTable:
    """Return the asks in the SQLite file at `path`.

    With another `clock` than the machine's, leases count by it as well, unless `boot` is given.
    """
    return AskTable(_SqliteAsks(SqliteDatabase(path, timeout), clock, boot))


class _SqliteAsks:
    """An `AskDatabase` in a SQLite file. Work on it never waits for the event loop."""

    # SQLite has RETURNING since 3.35; there is no way to a server to be saved.
    returns_rows = False

    def __init__(
        self, database: SqliteDatabase, clock: Clock, boot: BootClock | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._boot = boot or (since_boot if clock is time.time else _unknown)

    async def read(self, work: Callable[[Run], Awaitable[T]]) -> T:
        with self._database.reading() as connection:
            return await work(self._runner(connection))

    async def write(self, work: Callable[[Run], Awaitable[T]], *, is_vital: bool) -> T:
        if is_vital:
            self._set("synchronous = FULL")
        try:
            with self._database.writing() as connection:
                return await work(self._runner(connection))
        finally:
            if is_vital:
                self._set("synchronous = NORMAL")

    async def next_change(self, run: Run, *also: str) -> int:
        await run("UPDATE steersman_ask_changes SET last = last + 1")
        for statement in also:
            await run(statement)
        ((change,),) = await run("SELECT last FROM steersman_ask_changes")
        return int(change)

    def _runner(self, connection: sqlite3.Connection) -> Run:
        async def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
            dated = statement.replace(":now", repr(float(self._clock())))
            if ":lease" in dated:
                dated = dated.replace(":lease", repr(self._lease_time(connection)))
            return connection.execute(dated, values).fetchall()

        return run

    def _lease_time(self, connection: sqlite3.Connection) -> float:
        wall, found = float(self._clock()), self._boot()
        if found is None:
            return wall
        boot, seconds = found
        rows = connection.execute(SINCE, (boot,)).fetchall()
        if not rows:
            rows = _begin_boot(connection, boot, wall - seconds, wall)
        ((since,),) = rows
        return float(since) + seconds

    async def signal(self, changed: Callable[[], None]) -> None:
        seen, wait = None, SOON
        while True:
            await asyncio.sleep(wait)
            try:
                with self._database.reading() as connection:
                    found = connection.execute("PRAGMA data_version").fetchone()
            except StoreError:
                found = None
            if found is None or found != seen:
                changed()
            wait = SOON if found != seen else min(wait * SLOWER, LATE)
            seen = found

    async def aclose(self) -> None:
        self._database.close()

    def _set(self, pragma: str) -> None:
        with self._database.reading() as connection:
            connection.execute(f"PRAGMA {pragma}")


def _begin_boot(
    connection: sqlite3.Connection, boot: str, since: float, now: float
) -> list[tuple[float]]:
    """Keep when a boot began, for all processes; returns the row, which another may have written.

    Leases of another boot stay valid for a while: a file can be on a disk that two machines share,
    and the machine of an owner may still run. A clock that was wrong does not make it longer.
    """
    added = "INSERT INTO steersman_boots VALUES (?, ?) ON CONFLICT DO NOTHING"
    connection.execute(added, (boot, since))
    for table in ("steersman_conversations", "steersman_workers"):
        connection.execute(
            f"UPDATE {table} SET lease_until = ? WHERE lease_until > ?",  # noqa: S608 - ours
            (now + LONGEST_LEASE, now + LONGEST_LEASE),
        )
    connection.execute(
        "DELETE FROM steersman_boots WHERE rowid <= (SELECT max(rowid) FROM steersman_boots) - ?",
        (MOST_BOOTS,),
    )
    return connection.execute(SINCE, (boot,)).fetchall()


def _unknown() -> None:
    """Know no boot."""
