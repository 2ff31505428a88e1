"""Sessions in SQLite: what is private, what is refused, and what is told of a file in trouble."""

# ruff: noqa: ASYNC240 - the files of a test are small

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from steersman.errors import StoreError, StoreTooNew, UsageError
from steersman.stores import SqliteStore
from tests.stores.writing import KEY, batch_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_the_owner_can_read_the_file_and_those_beside_it(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.append(KEY, [{"type": "x"}])

        assert {mode_of(each) for each in path.parent.iterdir()} == {0o600}
        assert len(list(path.parent.iterdir())) == 3


async def test_a_file_that_others_can_read_is_narrowed(path: Path) -> None:
    path.touch(0o644)
    path.chmod(0o644)
    async with SqliteStore(path) as store:
        await store.append(KEY, [{"type": "x"}])

    assert mode_of(path) == 0o600


async def test_tables_of_a_later_release_are_refused_and_left_alone(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.append(KEY, [{"type": "x"}])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE steersman_schema SET version = 999")
    connection.close()
    before = path.read_bytes()

    store = SqliteStore(path)
    with pytest.raises(StoreTooNew, match="tables of version 999; this release of steersman knows"):
        await store.append(KEY, [{"type": "x"}])
    await store.aclose()

    assert path.read_bytes() == before


async def test_tables_of_others_in_the_file_are_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mine (value)")
        connection.execute("INSERT INTO mine VALUES (7)")
    connection.close()

    async with SqliteStore(path) as store:
        await store.append(KEY, [{"type": "x"}])

    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT value FROM mine").fetchall() == [(7,)]
    connection.close()


async def test_a_database_that_is_locked_is_told_in_time_and_nothing_is_stored(path: Path) -> None:
    async with SqliteStore(path, timeout=0.05) as store:
        await store.append(KEY, batch_of("a", 1))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreError, match=r"locked[\s\S]*held the database for 0.05 s"):
            await store.append(KEY, batch_of("a", 2))
        assert await store.load(KEY) == batch_of("a", 1)

        other.execute("ROLLBACK")
        other.close()
        await store.append(KEY, batch_of("a", 2))
        assert await store.positions(KEY) == 10


async def test_a_database_that_was_removed_is_told_until_it_is_back(path: Path) -> None:
    aside = path.with_suffix(".aside")
    async with SqliteStore(path) as store:
        await store.append(KEY, batch_of("a", 1))
    async with SqliteStore(path) as store:
        await store.positions(KEY)
        path.rename(aside)

        for _ in range(2):
            with pytest.raises(StoreError, match="was removed while it was in use"):
                await store.append(KEY, batch_of("a", 2))
        assert not os.path.lexists(path)

        aside.rename(path)
        await store.append(KEY, batch_of("a", 2))
        assert await store.load(KEY) == [*batch_of("a", 1), *batch_of("a", 2)]


async def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("This is a text, and it is long enough to be read as a database." * 20)
    for place, told in (
        (text, "not a database"),
        (tmp_path, "unable to open"),
        (tmp_path / "missing" / "db", "No such file"),
    ):
        store = SqliteStore(place)
        with pytest.raises(StoreError, match=told):
            await store.append(KEY, [{"type": "x"}])
        await store.aclose()


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_store_without_a_file_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="MemoryStore"):
        SqliteStore(path)


async def test_a_closed_store_says_so_and_leaves_no_thread(path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteStore(path)
    await store.append(KEY, [{"type": "x"}])
    mine = set(threading.enumerate()) - before
    await store.aclose()
    await store.aclose()
    for thread in mine:
        thread.join(5)

    assert not any(thread.is_alive() for thread in mine)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with pytest.raises(StoreError, match="is closed"):
        await store.load(KEY)


async def test_a_store_that_is_forgotten_ends_its_thread(path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteStore(path)
    await store.append(KEY, [{"type": "x"}])
    mine = set(threading.enumerate()) - before

    del store
    gc.collect()
    for thread in mine:
        thread.join(5)

    assert not any(thread.is_alive() for thread in mine)


async def test_work_that_is_cancelled_before_it_began_is_not_done(path: Path) -> None:
    async with SqliteStore(path) as store:
        begun, go = threading.Event(), threading.Event()

        async def wait() -> None:
            begun.set()
            go.wait(5)

        busy = asyncio.ensure_future(store._sessions.home.call(wait))
        await asyncio.to_thread(begun.wait, 5)
        late = asyncio.ensure_future(store.append(KEY, [{"type": "x"}]))
        await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        go.set()
        await busy

        assert await store.load(KEY) is None


@pytest.mark.process
async def test_a_forked_process_opens_the_database_anew(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.append(KEY, batch_of("parent", 1))
        child = os.fork()
        if child == 0:
            # Nothing of the parent's event loop or of pytest may run here.
            status = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(store.append(KEY, batch_of("child", 1)))
                status = 0
            finally:
                os._exit(status)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        await store.append(KEY, batch_of("parent", 2))

        assert os.waitstatus_to_exitcode(status) == 0
        wanted = [*batch_of("parent", 1), *batch_of("child", 1), *batch_of("parent", 2)]
        assert await store.load(KEY) == wanted
