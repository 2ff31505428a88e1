"""Tables of earlier releases are brought to this one when they are opened, and keep their rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from steersman.ports import StoredTurn
from steersman.stores import PostgresStore, SqliteStore
from steersman.transcripts.keys import SessionKey
from tests.inbox.places import Session, an_ask
from tests.postgres import PostgresServer
from tests.stores.kept_tables import check, fill, restored_dump, restored_file

KEY: SessionKey = {"project_key": "p", "session_id": "s1"}
ADDED: dict[int, tuple[str, ...]] = {
    4: (),
    3: (
        "steersman_workers",
        "steersman_budgets",
        "steersman_spendings",
        "steersman_reservations",
    ),
    2: ("steersman_conversations", "steersman_turns", "steersman_journals"),
    1: ("steersman_asks", "steersman_ask_changes"),
}
"""The tables that the release after each version has added; that after 4, a column of workers."""
SQLITE_ADDED = {4: "DROP TABLE steersman_boots"}
POSTGRES_ADDED = {4: "ALTER TABLE steersman_session_entries DROP COLUMN batch"}
"""The statements that remove what only one of the databases has, by the version before."""


def undone(version: int, own: Mapping[int, str]) -> list[str]:
    """The statements that lead back to a version."""
    tables = [table for since, added in ADDED.items() if since >= version for table in added]
    return [
        *(statement for since, statement in own.items() if since >= version),
        *(f"DROP TABLE {table}" for table in tables),
        *(["ALTER TABLE steersman_workers DROP COLUMN faults"] if version == 4 else []),
        f"UPDATE steersman_schema SET version = {version}",
    ]


async def begin(store: SqliteStore | PostgresStore) -> None:
    await store.append(KEY, [{"type": "x", "uuid": "1"}])
    session = Session(store.inbox())
    session.open(an_ask(id_="q"))
    await session.shown()
    await store.aclose()


async def go_on(store: SqliteStore | PostgresStore, version: int) -> None:
    work = store.work
    await work.take("s1", key="c", owner="a", token="a", machine="m", seconds=60.0)
    await work.begin("s1", "a", StoredTurn("u1", None, "pay"))
    asks = [ask.id for ask in await work.asks_of("s1", "u1")]
    assert asks == (["q"] if version >= 2 else [])
    assert await store.positions(KEY) == 1
    await store.aclose()


@pytest.mark.parametrize("version", [*SQLITE_ADDED, *ADDED])
async def test_a_file_of_an_earlier_release_is_migrated(tmp_path: Path, version: int) -> None:
    path = tmp_path / "work.db"
    await begin(SqliteStore(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in undone(version, SQLITE_ADDED):
            connection.execute(statement)

    await go_on(SqliteStore(path), version)


@pytest.mark.process
@pytest.mark.parametrize("version", [*POSTGRES_ADDED, *ADDED])
async def test_a_database_of_an_earlier_release_is_migrated(
    postgres_server: PostgresServer, postgres_url: str, version: int
) -> None:
    await begin(PostgresStore(postgres_url))
    schema = postgres_url.rpartition("%3D")[2]
    statements = [f"SET search_path = {schema}", *undone(version, POSTGRES_ADDED)]
    postgres_server.run("; ".join(statements))

    await go_on(PostgresStore(postgres_url), version)


@pytest.mark.parametrize("version", [5])
async def test_a_file_that_a_release_has_left_is_read_and_continued(
    tmp_path: Path, version: int
) -> None:
    restored_file(version, tmp_path / "kept.db")

    async with SqliteStore(tmp_path / "kept.db") as store:
        await check(store)


@pytest.mark.process
@pytest.mark.parametrize("version", [5])
async def test_a_database_that_a_release_has_left_is_read_and_continued(
    postgres_server: PostgresServer, postgres_url: str, version: int
) -> None:
    postgres_server.run(restored_dump(version, postgres_url.rpartition("%3D")[2]))

    async with PostgresStore(postgres_url) as store:
        await check(store)


async def test_what_this_release_leaves_is_what_the_kept_files_have(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "kept.db") as store:
        await fill(store)
    async with SqliteStore(tmp_path / "kept.db") as store:
        await check(store)
