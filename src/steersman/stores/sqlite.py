"""Sessions in a SQLite file: the standard library's, in a thread of the store's own."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from steersman import _json
from steersman.errors import StoreError, UsageError
from steersman.stores.entry_json import (
    CHUNK_ENTRIES,
    CHUNK_SIZE,
    Line,
    Place,
    check_timeout,
    decode,
    encode,
    fold,
    lines_of,
    new_lines,
    place_of,
    read_project,
    session_of,
)
from steersman.stores.plain_text import from_plain, to_plain
from steersman.stores.sqlite_database import SqliteDatabase
from steersman.stores.worker import Worker
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

if TYPE_CHECKING:
    from steersman.inbox.keeper import AskKeeper
    from steersman.inbox.stored import StoredInbox
    from steersman.journal import Entry
    from steersman.ports import Conversation
    from steersman.stores.stored_journal import StoredJournal

__all__ = ["SqliteStore"]

KNOWN = "SELECT uuid FROM steersman_session_entries WHERE session = ? AND uuid IN"
MOST_ASKED = 500
"""How many uuids are asked for in one statement."""


class SqliteStore:
    """A `SessionStore` in one file, which several processes of a machine may use at once.

    The file is opened, or created with mode 0600, at the first use. `timeout` is how long to wait
    for another process that writes. Errors are `StoreError`, and then nothing was stored.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        check_timeout(timeout)
        if str(path) in {"", ":memory:"}:
            raise UsageError("path", path, "the path of a file", hint="use MemoryStore() instead")
        # A relative path means the current folder, also if the program changes it later.
        self.path = Path(path).absolute()
        self._database = SqliteDatabase(self.path, timeout)
        self._worker = Worker("steersman-sqlite-store", self._database.close)
        self._is_closed = False
        self._timeout = timeout
        self._asks: AskKeeper | None = None

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"

    async def __aenter__(self) -> Self:
        await self._worker.run(_look, self._database)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the file, after the work that is waiting. May be called again."""
        self._is_closed = True
        if self._asks is not None:
            await self._asks.aclose()
        await self._worker.close()

    def inbox(self, *, expires_after: float | None = None) -> StoredInbox:
        """Return an inbox whose asks are in this file: any process that has it can answer them.

        After `expires_after` seconds an ask that this inbox has opened is denied.
        """
        from steersman.inbox.stored import StoredInbox  # noqa: PLC0415 - only an inbox needs it

        return StoredInbox(self._keeper(), expires_after=expires_after)

    def ready(self) -> AsyncGenerator[Conversation]:
        """Yield the conversations that can be continued, now and later, without an end.

        These have unsettled turns and no owner, and an answer came, or they wait for none. Each is
        yielded again only after a change. Opening one raises `SessionInUse` if another process was
        faster.
        """
        from steersman.inbox.ready import ready_conversations  # noqa: PLC0415 - as above

        return ready_conversations(self._keeper())

    def sink(
        self, conversation: str | Conversation, *, memory: int = 32 * 1024 * 1024
    ) -> StoredJournal:
        """Return a sink that writes the journal of a conversation: `Agent(journal=...)`.

        While the store cannot be reached, entries of up to `memory` bytes wait for it.
        """
        from steersman.stores.stored_journal import StoredJournal, name_of  # noqa: PLC0415 - as above

        return StoredJournal(self._keeper(), name_of(conversation), memory)

    def entries(self, conversation: str | Conversation, *, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield the entries that a sink of any process has written, after number `after`."""
        from steersman.stores.stored_journal import name_of, stored_entries  # noqa: PLC0415 - as above

        return stored_entries(self._keeper(), name_of(conversation), after)

    def follow(self, conversation: str | Conversation, *, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield the entries as `entries` does, and then new ones as they come, without an end."""
        from steersman.stores.stored_journal import follow_entries, name_of  # noqa: PLC0415 - as above

        return follow_entries(self._keeper(), name_of(conversation), after)

    def _keeper(self) -> AskKeeper:
        from steersman.inbox.keeper import AskKeeper  # noqa: PLC0415 - as above
        from steersman.stores.sqlite_asks import sqlite_asks  # noqa: PLC0415 - as above

        if self._asks is None:
            self._asks = AskKeeper(partial(sqlite_asks, self.path, self._timeout), self.path)
        return self._asks

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await self._ready().run(_append, self._database, place_of(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._ready().run(_load, self._database, place_of(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return await self._ready().run(_list_sessions, self._database, read_project(project_key))

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return await self._ready().run(_list_summaries, self._database, read_project(project_key))

    async def delete(self, key: SessionKey) -> None:
        await self._ready().run(_delete, self._database, place_of(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await self._ready().run(_list_subkeys, self._database, session_of(key))

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        place = place_of(key)
        session, end = await self._ready().run(_found, self._database, place)
        position = 0
        while position < end:
            chunk = await self._ready().run(_chunk, self._database, session, position, end)
            if not chunk:
                raise StoreError(f"the session {place.session} was deleted while it was read")
            yield chunk
            position += len(chunk)

    async def positions(self, key: SessionKey) -> int:
        _, count = await self._ready().run(_found, self._database, place_of(key))
        return count

    def _ready(self) -> Worker:
        if self._is_closed:
            raise StoreError(f"{self!r} is closed")
        return self._worker


def _look(database: SqliteDatabase) -> None:
    with database.reading():
        pass


def _append(database: SqliteDatabase, place: Place, entries: list[SessionStoreEntry]) -> None:
    lines = lines_of(entries)
    if not lines:
        return
    with database.writing() as connection:
        row = connection.execute(
            "SELECT id, mtime, entries, summary FROM steersman_sessions"
            " WHERE project_key = ? AND session_id = ? AND subpath = ?",
            _names(place),
        ).fetchone()
        session, before, count, summary = row or (_add_session(connection, place), 0, 0, None)
        fresh = new_lines(lines, _known(connection, session, lines))
        if not fresh:
            return
        connection.executemany(
            "INSERT INTO steersman_session_entries (session, position, uuid, entry)"
            " VALUES (?, ?, ?, ?)",
            (
                (session, at, line.uuid and to_plain(line.uuid), line.text.decode())
                for at, line in enumerate(fresh, start=count + 1)
            ),
        )
        mtime = max(int(time.time() * 1000), before + 1)
        connection.execute(
            "UPDATE steersman_sessions SET mtime = ?, entries = ?, summary = ? WHERE id = ?",
            (mtime, count + len(fresh), _summary(place, summary, fresh, mtime), session),
        )


def _summary(place: Place, kept: str | None, fresh: list[Line], mtime: int) -> str | None:
    if place.subpath:
        return None
    previous: SessionSummaryEntry | None = None
    if kept is not None:
        data = _json.loads(kept.encode())
        previous = {"session_id": place.session, "mtime": mtime, "data": data}
    row = fold(previous, place, [line.entry for line in fresh], mtime)
    return encode(row["data"]).decode()


def _add_session(connection: sqlite3.Connection, place: Place) -> int:
    added = connection.execute(
        "INSERT INTO steersman_sessions (project_key, session_id, subpath, mtime, entries)"
        " VALUES (?, ?, ?, 0, 0)",
        _names(place),
    )
    assert added.lastrowid is not None
    return added.lastrowid


def _known(connection: sqlite3.Connection, session: int, lines: list[Line]) -> set[str]:
    """Return those uuids of the lines that the session has."""
    uuids = [to_plain(line.uuid) for line in lines if line.uuid is not None]
    known: set[str] = set()
    for begin in range(0, len(uuids), MOST_ASKED):
        some = uuids[begin : begin + MOST_ASKED]
        marks = ",".join("?" * len(some))
        asked = f"{KNOWN} ({marks})"
        known.update(from_plain(uuid) for (uuid,) in connection.execute(asked, (session, *some)))
    return known


def _found(database: SqliteDatabase, place: Place) -> tuple[int, int]:
    """Return the number of a session and how many entries it has; zeros if there is none."""
    with database.reading() as connection:
        row = connection.execute(
            "SELECT id, entries FROM steersman_sessions"
            " WHERE project_key = ? AND session_id = ? AND subpath = ?",
            _names(place),
        ).fetchone()
    return row or (0, 0)


def _load(database: SqliteDatabase, place: Place) -> list[SessionStoreEntry] | None:
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT entry FROM steersman_session_entries WHERE session ="
            " (SELECT id FROM steersman_sessions"
            " WHERE project_key = ? AND session_id = ? AND subpath = ?) ORDER BY position",
            _names(place),
        )
        return [decode(text.encode()) for (text,) in rows] or None


def _chunk(
    database: SqliteDatabase, session: int, position: int, end: int
) -> list[SessionStoreEntry]:
    chunk: list[SessionStoreEntry] = []
    size = 0
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT entry FROM steersman_session_entries"
            " WHERE session = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?",
            (session, position, end, CHUNK_ENTRIES),
        )
        for (text,) in rows:
            chunk.append(decode(text.encode()))
            size += len(text)
            if size >= CHUNK_SIZE:
                break
        rows.close()
    return chunk


def _list_sessions(database: SqliteDatabase, project: str) -> list[SessionStoreListEntry]:
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT session_id, mtime FROM steersman_sessions"
            " WHERE project_key = ? AND subpath = ''",
            (to_plain(project),),
        )
        return [{"session_id": from_plain(name), "mtime": mtime} for name, mtime in rows]


def _list_summaries(database: SqliteDatabase, project: str) -> list[SessionSummaryEntry]:
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT session_id, mtime, summary FROM steersman_sessions"
            " WHERE project_key = ? AND subpath = '' AND summary IS NOT NULL",
            (to_plain(project),),
        )
        return [
            {"session_id": from_plain(name), "mtime": mtime, "data": _json.loads(data.encode())}
            for name, mtime, data in rows
        ]


def _delete(database: SqliteDatabase, place: Place) -> None:
    project, session, subpath = _names(place)
    with database.writing() as connection:
        connection.execute(
            "DELETE FROM steersman_sessions WHERE project_key = ? AND session_id = ?"
            " AND (? = '' OR subpath = ?)",
            (project, session, subpath, subpath),
        )


def _list_subkeys(database: SqliteDatabase, place: Place) -> list[str]:
    project, session, _ = _names(place)
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT subpath FROM steersman_sessions"
            " WHERE project_key = ? AND session_id = ? AND subpath != '' ORDER BY id",
            (project, session),
        )
        return [from_plain(subpath) for (subpath,) in rows]


def _names(place: Place) -> tuple[str, str, str]:
    return to_plain(place.project), to_plain(place.session), to_plain(place.subpath)
