"""A SQLite file with steersman's tables: opened, migrated, and its errors in words.

All of it runs in the one thread of a store. The file is created with mode 0600, which SQLite gives
to the files beside it, too.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from steersman.errors import StoreError, StoreTooNew
from steersman.stores.ask_schema import ask_tables
from steersman.stores.fleet_schema import WORKER_FAULTS, fleet_tables
from steersman.stores.work_schema import work_tables

__all__ = ["SqliteDatabase"]

log = logging.getLogger("steersman.stores")

OWNER_ONLY = 0o600
OTHERS = 0o077

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE steersman_sessions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            project_key TEXT NOT NULL,
            session_id TEXT NOT NULL,
            subpath TEXT NOT NULL,
            mtime INTEGER NOT NULL,
            entries INTEGER NOT NULL,
            summary TEXT,
            UNIQUE (project_key, session_id, subpath)
        )""",
        """CREATE TABLE steersman_session_entries (
            session INTEGER NOT NULL REFERENCES steersman_sessions (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            uuid TEXT,
            entry TEXT NOT NULL,
            UNIQUE (session, position)
        )""",
        """CREATE UNIQUE INDEX steersman_session_uuids
            ON steersman_session_entries (session, uuid) WHERE uuid IS NOT NULL""",
    ),
    ask_tables(serial="INTEGER PRIMARY KEY AUTOINCREMENT", real="REAL"),
    work_tables(serial="INTEGER PRIMARY KEY AUTOINCREMENT", real="REAL"),
    fleet_tables(real="REAL"),
    (
        # When each boot began, by the clock on the wall when the file was first used in it.
        "CREATE TABLE steersman_boots (boot TEXT NOT NULL PRIMARY KEY, since REAL NOT NULL)",
        *WORKER_FAULTS,
    ),
)
"""The statements that lead from each version to the next. Add to the end; change nothing."""

_lost: list[sqlite3.Connection] = []
"""Connections of a parent process. SQLite allows a forked process not even to close them."""


class SqliteDatabase:
    """The connection of one store to its file."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._identity: tuple[int, int] | None = None
        self._was_open = False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Give the connection. Raises `StoreError`."""
        with self._errors_translated():
            yield self._open()

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Give the connection in a transaction: all of it is stored, or nothing."""
        with self._errors_translated():
            connection = self._open()
            with _transaction(connection):
                yield connection

    def close(self) -> None:
        """Close the connection. May be called again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._pid != os.getpid():
            _lost.append(connection)
            return
        with suppress(sqlite3.Error):
            connection.close()

    def _open(self) -> sqlite3.Connection:
        """Return the connection to the file that is there now."""
        found = _identity(self.path)
        if self._was_open and found is None:
            self.close()
            raise StoreError(
                f"{self.path} was removed while it was in use",
                hint="put the file back; a new store for this path begins an empty one",
            )
        if self._connection is not None and (self._pid, self._identity) == (os.getpid(), found):
            return self._connection
        if self._identity not in (None, found):
            log.warning("%s was replaced by another file", self.path)
        self.close()
        self._create(found)
        connection = sqlite3.connect(self.path, timeout=self._timeout, isolation_level=None)
        try:
            _prepare(connection, str(self.path))
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        self._identity, self._was_open = _identity(self.path), True
        return connection

    def _create(self, found: tuple[int, int] | None) -> None:
        # Never opened here if it exists: closing it would release the locks that other connections
        # of this process hold on it.
        if found is None:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        elif self.path.stat().st_mode & OTHERS:
            self.path.chmod(OWNER_ONLY)

    @contextmanager
    def _errors_translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}", hint=self._hint(error)) from error
        except OSError as error:
            raise StoreError(
                f"{self.path}: {error.strerror or error}", hint="check the folder and its mode"
            ) from error

    def _hint(self, error: sqlite3.Error) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return (
                f"another process has held the database for {self._timeout:g} s:"
                " find it, or raise timeout="
            )
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return "nothing of the batch was stored; make room on the disk, and try again"
        if name == "SQLITE_NOTADB":
            return "pass the path of a SQLite database, or of a file that is not there yet"
        return "nothing of the batch was stored"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_dev, about.st_ino


def _prepare(connection: sqlite3.Connection, where: str) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    if _version(connection, where) == len(MIGRATIONS):
        return
    connection.execute("PRAGMA journal_mode = WAL")
    with _transaction(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS steersman_schema (version INTEGER NOT NULL)")
        # Another process may have migrated it in the meantime.
        version = _version(connection, where)
        for statement in (each for step in MIGRATIONS[version:] for each in step):
            connection.execute(statement)
        connection.execute("DELETE FROM steersman_schema")
        connection.execute("INSERT INTO steersman_schema VALUES (?)", (len(MIGRATIONS),))


def _version(connection: sqlite3.Connection, where: str) -> int:
    named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'steersman_schema'"
    if connection.execute(named).fetchone() is None:
        return 0
    found: int = connection.execute("SELECT max(version) FROM steersman_schema").fetchone()[0] or 0
    if found > len(MIGRATIONS):
        raise StoreTooNew(where, found, len(MIGRATIONS))
    return found


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, as that of a full disk, SQLite has rolled back by itself.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
