"""The asks of a SQLite file: a connection of their own, in the thread that keeps them.

SQLite sends no notifications. While asks wait, its `data_version` is looked at a few times per
second; it changes when another connection has written.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

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


def sqlite_asks(path: Path, timeout: float, clock: Clock = time.time) -> AskTable:
    """Return the asks in the SQLite file at `path`."""
    return AskTable(_SqliteAsks(SqliteDatabase(path, timeout), clock))


class _SqliteAsks:
    """An `AskDatabase` in a SQLite file. Work on it never waits for the event loop."""

    # SQLite has RETURNING since 3.35; there is no way to a server to be saved.
    returns_rows = False

    def __init__(self, database: SqliteDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock

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
            return connection.execute(dated, values).fetchall()

        return run

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
