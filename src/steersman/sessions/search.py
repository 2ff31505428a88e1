"""Searches the text of sessions: with an index that grows with the files, or without one.

The index only names places to look at. Each line there is read again and compared, so that an index
that is old, or wrong, adds nothing to the result.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from steersman.sessions.index import Database
from steersman.sessions.places import SessionFile
from steersman.sessions.reading import MARK, FileSource
from steersman.sessions.words import Hit, Query, may_have_text, ranked, text_of
from steersman.transcripts.blocks import lines_backward, lines_forward
from steersman.transcripts.entries import read_entry

if TYPE_CHECKING:
    import sqlite3

LEAST_CANDIDATES = 100
CANDIDATES_PER_HIT = 5
"""How many entries that fit are compared, the newest ones, for each hit that is returned."""
CHUNK = 200
"""Rows of the index that are looked at together."""

FEW_FOLDERS = 20
"""Up to how many folders of projects are named in a query. With more, most of the index fits."""

State = tuple[int, int, int]


def search(
    database: Database | None, files: Sequence[SessionFile], query: Query, limit: int
) -> list[Hit]:
    """Return the best hits in `files`, which are sorted newest first. Never raises."""
    if not files:
        return []
    most = max(LEAST_CANDIDATES, limit * CANDIDATES_PER_HIT)
    found = None if database is None else _by_index(database, files, query, most)
    return ranked(_by_reading(files, query, most) if found is None else found, limit)


def _by_reading(files: Sequence[SessionFile], query: Query, most: int) -> list[Hit]:
    found: list[Hit] = []
    for file in files:
        try:
            with FileSource(file.path) as source:
                for line in lines_backward(source):
                    if may_have_text(line.data):
                        hit = query.hit(read_entry(line.data), file.session_id)
                        found += [hit] if hit else []
                    if len(found) >= most:
                        return found
        except OSError:
            continue
    return found


def _by_index(
    database: Database, files: Sequence[SessionFile], query: Query, most: int
) -> list[Hit] | None:
    """Return the newest hits, or None if there is no index that can be used."""
    import sqlite3  # noqa: PLC0415 - only where an index is used

    for _ in range(2):
        connection = database.connect()
        if connection is None:
            return None
        with closing(connection):
            try:
                _grow(connection, files)
                return list(_newest(connection, files, query, most))
            except (sqlite3.DatabaseError, TypeError, ValueError) as error:
                code = getattr(error, "sqlite_errorcode", None)
                if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
                    # Locked, read-only, or a full disk.
                    return None
                # Damaged: made anew, once.
                database.discard()
    return None


def _grow(connection: sqlite3.Connection, files: Sequence[SessionFile]) -> None:
    """Add what is new in the files, the oldest first."""
    rows = connection.execute("SELECT path, size, mtime, number FROM files")
    known: dict[str, State] = {os.fsdecode(path): tuple(state) for path, *state in rows}
    for file in reversed(files):
        if known.get(file.path) != (file.size, file.mtime_ns, file.number):
            try:
                with FileSource(file.path) as source:
                    _add(connection, file, source)
            except OSError:
                continue


def _add(connection: sqlite3.Connection, file: SessionFile, source: FileSource) -> None:
    # Locks out other processes, so that no line is added twice.
    connection.execute("BEGIN IMMEDIATE")
    try:
        number, start, mark = _begin(connection, file, source)
        for line in lines_forward(source, start):
            if not line.is_ended:
                break
            start = line.offset + len(line.data) + 1
            mark = (line.data[-MARK:] + b"\n")[-MARK:]
            text = text_of(read_entry(line.data)) if may_have_text(line.data) else ""
            if text:
                place = (number, line.offset, len(line.data))
                added = connection.execute(
                    "INSERT INTO lines (file, offset, length) VALUES (?, ?, ?)", place
                )
                connection.execute(
                    "INSERT INTO words (rowid, text, project) VALUES (?, ?, ?)",
                    (added.lastrowid, _writable(text), _project(file.path)),
                )
        connection.execute(
            "UPDATE files SET size = ?, mtime = ?, number = ?, offset = ?, mark = ? WHERE file = ?",
            (file.size, file.mtime_ns, file.number, start, mark, number),
        )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _begin(
    connection: sqlite3.Connection, file: SessionFile, source: FileSource
) -> tuple[int, int, bytes]:
    """Return the number of a file in the index, and from where on it is to be added."""
    path = os.fsencode(file.path)
    row = connection.execute(
        "SELECT file, number, offset, mark FROM files WHERE path = ?", (path,)
    ).fetchone()
    if row is not None:
        known, number, offset, mark = row
        is_same = number == file.number and source.size >= offset
        if is_same and source.read(offset - len(mark), len(mark)) == mark:
            return known, offset, mark
        # Replaced: lines that have the old number are not looked at any more.
        connection.execute("DELETE FROM files WHERE file = ?", (known,))
    added = connection.execute("INSERT INTO files (path) VALUES (?)", (path,))
    assert added.lastrowid is not None
    return added.lastrowid, 0, b""


def _newest(
    connection: sqlite3.Connection, files: Sequence[SessionFile], query: Query, most: int
) -> Iterator[Hit]:
    """Yield hits, those that were added last first."""
    by_path = {os.fsencode(each.path): each for each in files}
    rows = connection.execute("SELECT file, path FROM files")
    present = {number: by_path[path] for number, path in rows if path in by_path}
    folders = {_project(each.path) for each in files}
    expression = query.match_expression("text")
    if len(folders) <= FEW_FOLDERS:
        expression += f" AND {{project}} : ({' OR '.join(sorted(folders))})"
    found = connection.execute(
        "SELECT lines.file, lines.offset, lines.length FROM words"
        " JOIN lines ON lines.line = words.rowid"
        " WHERE words MATCH ? ORDER BY words.rowid DESC",
        (expression,),
    )
    count = 0
    while count < most and (chunk := found.fetchmany(CHUNK)):
        for number, offset, length in chunk:
            file = present.get(number)
            hit = None if file is None else _read(file, offset, length, query)
            if hit is not None:
                yield hit
                count += 1
                if count >= most:
                    return


def _read(file: SessionFile, offset: int, length: int, query: Query) -> Hit | None:
    try:
        with FileSource(file.path) as source:
            return query.hit(read_entry(source.read(offset, length)), file.session_id)
    except OSError:
        return None


def _project(path: str) -> str:
    """Return the word by which the index knows the folder of a file."""
    folder = os.fsencode(os.path.dirname(path))
    return "p" + hashlib.sha256(folder).hexdigest()[:24]


def _writable(text: str) -> str:
    """Return `text` as SQLite can store it: without lone surrogates and null characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
