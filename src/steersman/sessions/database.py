"""The file of the index: `<cache>/sessions.sqlite3`, which only its owner can read.

Everything in it can be made again from the session files. A file that is damaged, or that another
release made, is replaced. One that cannot be used is not: `connect` returns None, and the caller
works without.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

NAME = "sessions.sqlite3"
VERSION = 1
OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
PATIENCE = 2.0
"""Seconds to wait for another process that writes to the index."""

SCHEMA = """
CREATE TABLE summaries (
    path BLOB PRIMARY KEY, size INTEGER, mtime INTEGER, number INTEGER,
    offset INTEGER, mark BLOB, data BLOB
) WITHOUT ROWID;
CREATE TABLE files (
    file INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB UNIQUE,
    size INTEGER, mtime INTEGER, number INTEGER, offset INTEGER, mark BLOB
);
CREATE TABLE lines (
    line INTEGER PRIMARY KEY, file INTEGER, offset INTEGER, length INTEGER
);
CREATE VIRTUAL TABLE words USING fts5(
    text, project, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2'
);
"""


class Database:
    """Opens the index; None instead of a connection if that cannot be done."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, NAME)

    def connect(self) -> sqlite3.Connection | None:
        """Return a connection of its own, with the tables of this release; never raises."""
        import sqlite3  # noqa: PLC0415 - only where an index is used

        for is_last in (False, True):
            try:
                return self._opened()
            except sqlite3.OperationalError:
                # Locked, read-only, a full disk, or SQLite without FTS5: not for us to replace.
                return None
            except (sqlite3.DatabaseError, OSError):
                if is_last:
                    return None
                self.discard()
        return None

    def discard(self) -> None:
        """Remove the index, so that the next one is made anew; never raises."""
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.remove(self.path + end)

    def _opened(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - as above

        os.makedirs(os.path.dirname(self.path), OWNER_ONLY_FOLDER, exist_ok=True)
        # Created here, because SQLite would let others read it; its other files get this mode.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(self.path, flags, OWNER_ONLY))
        found = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            self._prepare(found)
        except BaseException:
            found.close()
            raise
        return found

    def _prepare(self, found: sqlite3.Connection) -> None:
        if found.execute("PRAGMA user_version").fetchone() == (VERSION,):
            return
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = NORMAL")
        found.execute("BEGIN IMMEDIATE")
        # Another process may have been quicker.
        if found.execute("PRAGMA user_version").fetchone() != (VERSION,):
            tables = found.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
                " AND name IN ('summaries', 'files', 'lines', 'words')"
            ).fetchall()
            for (name,) in tables:
                found.execute(f"DROP TABLE {name}")
            for statement in SCHEMA.split(";"):
                found.execute(statement)
            found.execute(f"PRAGMA user_version = {VERSION}")
        found.execute("COMMIT")
