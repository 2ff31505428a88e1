"""The tables of a `PostgresStore`, and how they are brought to the version of this release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.errors import StoreError, StoreTooNew
from steersman.stores.ask_schema import ask_tables
from steersman.stores.fleet_schema import WORKER_FAULTS, fleet_tables
from steersman.stores.work_schema import work_tables

if TYPE_CHECKING:
    from steersman.stores.postgres_connections import Connection

__all__ = ["MIGRATIONS", "migrate"]

MIGRATION_LOCK = 7_236_811_945_201_337
"""The advisory lock of all who migrate; any number that nothing else uses."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE steersman_sessions (
            id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            project_key TEXT NOT NULL,
            session_id TEXT NOT NULL,
            subpath TEXT NOT NULL,
            mtime BIGINT NOT NULL,
            entries BIGINT NOT NULL,
            summary JSON,
            UNIQUE (project_key, session_id, subpath)
        )""",
        # Not jsonb, which changes numbers and the order of keys, and has no \u0000.
        """CREATE TABLE steersman_session_entries (
            session BIGINT NOT NULL REFERENCES steersman_sessions (id) ON DELETE CASCADE,
            position BIGINT NOT NULL,
            uuid TEXT,
            size INTEGER NOT NULL,
            entry JSON NOT NULL,
            PRIMARY KEY (session, position)
        )""",
        """CREATE UNIQUE INDEX steersman_session_uuids
            ON steersman_session_entries (session, uuid) WHERE uuid IS NOT NULL""",
    ),
    ask_tables(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", real="DOUBLE PRECISION"),
    work_tables(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", real="DOUBLE PRECISION"),
    fleet_tables(real="DOUBLE PRECISION"),
    (
        # On the first entry of each batch: what is looked for after a commit without an answer.
        "ALTER TABLE steersman_session_entries ADD COLUMN batch TEXT",
        *WORKER_FAULTS,
    ),
)
"""The statements that lead from each version to the next. Add to the end; change nothing."""


async def migrate(connection: Connection, where: str) -> None:
    """Create the tables, or bring them to this release. Raises `StoreTooNew` for later ones."""
    if await _version(connection, where) == len(MIGRATIONS):
        return
    found = await connection.execute("SHOW server_encoding")
    encoding = (await found.fetchone() or ("",))[0]
    if encoding != "UTF8":
        raise StoreError(
            f"{where}: the database has the encoding {encoding}; texts need UTF8",
            hint="create the database with ENCODING 'UTF8'",
        )
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        # This looks for the table anew; `to_regclass` may still know that there was none.
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS steersman_schema (version INTEGER NOT NULL)"
        )
        version = await _found(connection, where)
        for statement in (each for step in MIGRATIONS[version:] for each in step):
            await connection.execute(statement.encode())
        await connection.execute("DELETE FROM steersman_schema")
        await connection.execute("INSERT INTO steersman_schema VALUES (%s)", (len(MIGRATIONS),))


async def _version(connection: Connection, where: str) -> int:
    # Not `to_regclass`: it may still know that the table was missing before the lock was taken.
    asked = await connection.execute(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables"
        " WHERE tablename = 'steersman_schema' AND schemaname = ANY (current_schemas(false)))"
    )
    if not (await asked.fetchone() or (False,))[0]:
        return 0
    return await _found(connection, where)


async def _found(connection: Connection, where: str) -> int:
    asked = await connection.execute("SELECT max(version) FROM steersman_schema")
    found = int((await asked.fetchone() or (0,))[0] or 0)
    if found > len(MIGRATIONS):
        raise StoreTooNew(where, found, len(MIGRATIONS))
    return found
