"""The index: `<cache>/sessions.sqlite3`, which only its owner can read.

It keeps what a list shows of each file, and the words of entries for `search`. Everything in it can
be made again from the session files: it is never needed, and only saves time. A file that is
damaged, or that another release made, is replaced. One that cannot be used is not: `connect`
returns None, and the caller works without.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from steersman import _json
from steersman._json import JsonDict
from steersman.sessions.changes import OWNER_ONLY, OWNER_ONLY_FOLDER
from steersman.sessions.places import SessionFile
from steersman.sessions.reading import BLOCK, NOTHING, Folded, fold_file, fold_small

if TYPE_CHECKING:
    import sqlite3

NAME = "sessions.sqlite3"
VERSION = 1
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


FEW = 200
"""Up to how many files are looked up one by one."""
LARGE = 16
"""From how many files on it is worth while to keep what was read, or ..."""
LARGE_FILE = 1 << 20
"""... from which size of a file."""

Kept = tuple[int, int, int, Folded]
"""Size, time and number of a file, and what was read of it."""


class Summaries:
    """Reads files, and what was read of them before from the index, if there is one."""

    def __init__(self, database: Database | None) -> None:
        self._database = database
        self._kept: Mapping[str, Kept] = {}
        self._new: dict[str, Kept] = {}

    def prepare(self, files: Sequence[SessionFile]) -> None:
        """Look up what the index has about files that will be read."""
        if self._database is not None:
            self._kept = _load(self._database, [each.path for each in files])

    def data(self, file: SessionFile) -> JsonDict:
        """Return the data of the summary of a file. Raises `OSError`."""
        if self._database is None and file.size < BLOCK:
            found = fold_small(file.path, file.size)
            return fold_file(file.path).data if found is None else found
        kept = self._kept.get(file.path)
        state = file.size, file.mtime_ns, file.number
        if kept is not None and kept[:3] == state:
            return kept[3].data
        is_same = kept is not None and kept[2] == file.number
        folded = fold_file(file.path, kept[3] if kept is not None and is_same else NOTHING)
        if self._database is not None:
            self._new[file.path] = (*state, folded)
        return folded.data

    def keep(self) -> None:
        """Write what was read to the index, if that saves time later; never raises."""
        new, self._new = self._new, {}
        is_worth = len(new) >= LARGE or any(each[0] >= LARGE_FILE for each in new.values())
        if self._database is not None and is_worth:
            _save(self._database, new)


def _load(database: Database, paths: Sequence[str]) -> dict[str, Kept]:
    import sqlite3  # noqa: PLC0415 - only where an index is used

    connection = database.connect()
    if connection is None:
        return {}
    columns = "SELECT path, size, mtime, number, offset, mark, data FROM summaries"
    try:
        if len(paths) <= FEW:
            marks = ",".join("?" * len(paths))
            names = [os.fsencode(each) for each in paths]
            rows = connection.execute(f"{columns} WHERE path IN ({marks})", names).fetchall()
        else:
            rows = connection.execute(columns).fetchall()
    except sqlite3.OperationalError:
        return {}
    except sqlite3.DatabaseError:
        # Damaged: the next one is made anew.
        database.discard()
        return {}
    finally:
        connection.close()
    return {path: kept for path, kept in map(_read, rows) if kept is not None}


def _read(row: tuple[object, ...]) -> tuple[str, Kept | None]:
    """Return a row of the index, or None in its place if it is damaged."""
    path, size, mtime, number, offset, mark, data = row
    if not (isinstance(path, bytes) and isinstance(mark, bytes) and isinstance(data, bytes)):
        return "", None
    if not (isinstance(size, int) and isinstance(mtime, int) and isinstance(number, int)):
        return "", None
    try:
        found = _json.loads(data)
    except ValueError:
        return "", None
    if not _json.is_object(found) or not isinstance(offset, int) or offset < len(mark):
        return "", None
    return os.fsdecode(path), (size, mtime, number, Folded(offset, mark, found))


def _save(database: Database, new: Mapping[str, Kept]) -> None:
    import sqlite3  # noqa: PLC0415 - as above

    connection = database.connect()
    if connection is None:
        return
    rows = [
        (os.fsencode(path), *state, folded.offset, folded.mark, _json.dumps(folded.data))
        for path, (*state, folded) in new.items()
    ]
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("BEGIN IMMEDIATE")
        known = connection.execute("SELECT path FROM summaries").fetchall()
        lost = [each for each in known if not os.path.exists(each[0])]
        connection.executemany("DELETE FROM summaries WHERE path = ?", lost)
        connection.executemany(
            "INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?, ?, ?, ?)", rows
        )
        connection.execute("COMMIT")
    connection.close()


def forget(database: Database, path: str) -> None:
    """Remove what the index has about a file, but for single words; never raises."""
    import sqlite3  # noqa: PLC0415 - as above

    connection = database.connect()
    if connection is None:
        return
    with suppress(sqlite3.Error):
        connection.execute("DELETE FROM summaries WHERE path = ?", (os.fsencode(path),))
        connection.execute("DELETE FROM files WHERE path = ?", (os.fsencode(path),))
    connection.close()
