"""The thread of an inbox ends only when everything that it began has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

from steersman.inbox.changes import Watch
from steersman.permissions import Allow
from steersman.stores import SqliteStore
from steersman.stores._sql.asks import AskTable
from steersman.stores.sqlite import SqliteDatabase
from tests.inbox.places import Session, an_ask, until

LIMIT = 20.0


class SlowToEnd(SqliteDatabase):
    """A file where a listener takes some steps of its loop to end."""

    has_begun = has_ended = False

    async def _signal(self, changed: Callable[[], None]) -> None:
        self.has_begun = True
        try:
            await super()._signal(changed)
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            self.has_ended = True


async def test_a_listener_has_closed_its_connection_before_the_thread_ends(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "asks.db")
    database = store._database = SlowToEnd(store.path, 5.0)  # pyright: ignore[reportPrivateUsage] - the seam is the file
    inbox = store.inbox()
    watch: Watch = inbox.watch()

    async with asyncio.timeout(LIMIT):
        await until(lambda: database.has_begun)
        await watch.aclose()
        await store.aclose()

    assert database.has_ended


class FailsOnce:
    """The rows of a file, where the first look for changes meets a defect."""

    def __init__(self, rows: AskTable) -> None:
        self._rows = rows
        self._has_failed = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._rows, name)

    async def last_change(self) -> int:
        if not self._has_failed:
            self._has_failed = True
            raise RuntimeError("a defect")
        return await self._rows.last_change()


class StopsOnce(SqliteDatabase):
    """A file where the first listener meets a defect."""

    has_failed = False

    async def _signal(self, changed: Callable[[], None]) -> None:
        if not self.has_failed:
            self.has_failed = True
            raise RuntimeError("a defect")
        await super()._signal(changed)


async def test_asks_outlive_a_defect_and_the_inbox_says_so_meanwhile(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "asks.db")
    store.asks = cast("AskTable", FailsOnce(store.asks))
    inbox = store.inbox()
    session = Session(inbox)

    async with asyncio.timeout(LIMIT):
        session.open(an_ask())
        await until(lambda: inbox.faults)
        faults = inbox.faults
        await session.shown()
        await until(lambda: not inbox.faults)
        await store.aclose()

    assert faults == {"the asks of the store": "a defect"}


async def test_a_listener_that_meets_a_defect_is_begun_again_and_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "asks.db")
    store._database = StopsOnce(store.path, 5.0)
    inbox, other = store.inbox(), SqliteStore(tmp_path / "asks.db")
    session = Session(inbox)

    async with asyncio.timeout(LIMIT):
        ask = session.open(an_ask())
        await until(lambda: inbox.faults)
        faults = inbox.faults
        await session.shown()
        await other.inbox().answer(ask, Allow(), by="ann")
        await session.answers()
        await store.aclose()
        await other.aclose()

    assert faults == {"the news of the store": "RuntimeError: a defect"}


async def test_an_ask_that_comes_as_the_last_one_leaves_is_kept(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "asks.db") as store, asyncio.timeout(LIMIT):
        inbox = store.inbox()
        for number in range(200):
            watch = inbox.watch()
            session = Session(inbox)
            await watch.aclose()
            ask = session.open(an_ask(id_=f"r{number}"))
            await session.shown()
            inbox.close_ask(ask, "withdrawn")
