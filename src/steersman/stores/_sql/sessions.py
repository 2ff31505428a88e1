"""The tables of sessions: transcripts as the CLI writes them, entry by entry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from uuid import uuid4

from steersman import _json
from steersman.errors import StoreError
from steersman.stores._sql.database import Database, Transaction, from_plain, to_plain
from steersman.stores.entry_json import (
    CHUNK_ENTRIES,
    CHUNK_SIZE,
    Line,
    Place,
    chunks,
    encode,
    fold,
    lines_of,
    new_lines,
    place_of,
    read_project,
    session_of,
)
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

MOST_SENT = 16 << 20
"""Bytes of entries in one statement."""
MOST_ROWS, MOST_ASKED = 150, 500
"""Rows, and uuids that are asked for, in one statement. SQLite has a limit for values."""

WHERE = "FROM steersman_sessions WHERE project_key = ? AND session_id = ?"
FIND = f"SELECT id, entries {WHERE} AND subpath = ?"
TAKEN = "SELECT id, entries, CAST(summary AS TEXT), mtime, :now"
TAKE = f"{TAKEN} {WHERE} AND subpath = ?"
ADD_SESSION = (
    "INSERT INTO steersman_sessions (project_key, session_id, subpath, mtime, entries)"
    " VALUES (?, ?, ?, 0, 0)"
)
UPDATE = "UPDATE steersman_sessions SET mtime = ?, entries = ?, summary = ? WHERE id = ?"
KNOWN = "SELECT uuid FROM steersman_session_entries WHERE session = ? AND uuid"

# To a server all entries go in one statement, and back as bytes and not more than are wanted. The
# first entry names the batch: what is looked for after a commit whose confirmation was lost.
ADD_TO_SERVER = (
    "INSERT INTO steersman_session_entries (session, position, uuid, size, entry, batch)"
    " SELECT ?, ? + place, uuid, octet_length(entry), entry::json, CASE WHEN place = 1 THEN ? END"
    " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS new (uuid, entry, place)"
)
KNOWN_TO_SERVER = (
    "ARRAY(SELECT uuid FROM steersman_session_entries WHERE session = id AND uuid = ANY(?::text[]))"
)
TAKE_FROM_SERVER = f"{TAKEN}, {KNOWN_TO_SERVER} {WHERE} AND subpath = ?"
ADD_LAST_TO_SERVER = f"WITH added AS ({ADD_TO_SERVER}) {UPDATE}"
WRITTEN = "SELECT 1 FROM steersman_session_entries WHERE session = ? AND position = ? AND batch = ?"
CHUNK_OF_SERVER = (
    "SELECT convert_to(entry::text, 'UTF8') FROM ("
    " SELECT position, entry, sum(size) OVER (ORDER BY position) - size AS before"
    " FROM steersman_session_entries WHERE session = ? AND position > ? AND position <= ?"
    " ORDER BY position LIMIT ?) AS next WHERE before < ? ORDER BY position"
)
ADD_TO_FILE = "INSERT INTO steersman_session_entries (session, position, uuid, entry) VALUES "
ROW = "(?, ?, ?, ?)"
CHUNK_OF_FILE = (
    "SELECT CAST(entry AS BLOB) FROM steersman_session_entries"
    " WHERE session = ? AND position > ? AND position <= ?"
    " ORDER BY position LIMIT ?"
)


class SessionTable:
    """The protocol `SessionStore` over a database.

    Entries are read and written in a thread, and a long session takes a while: a database for it
    alone keeps leases and asks from waiting.
    """

    def __init__(self, sessions: Database) -> None:
        self._sessions = sessions
        self._chunk = CHUNK_OF_SERVER if sessions.is_server else CHUNK_OF_FILE

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        place, database = place_of(key), self._sessions

        async def work() -> None:
            # Not in the event loop of the caller, nor within a transaction: it can take a while.
            lines = lines_of(entries)
            if lines:
                await database.write(_Batch(place, lines, is_for_server=database.is_server).write)

        await database.run(work)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        async def work() -> list[SessionStoreEntry] | None:
            found: list[SessionStoreEntry] = []
            async for chunk in self.stream(key):
                found += chunk
            return found or None

        # In one call of the thread, although it reads chunk by chunk.
        return await self._sessions.run(work)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        project = to_plain(read_project(project_key))

        async def work(tx: Transaction) -> list[SessionStoreListEntry]:
            rows = await tx.run(
                "SELECT session_id, mtime FROM steersman_sessions"
                " WHERE project_key = ? AND subpath = ''",
                project,
            )
            return [{"session_id": from_plain(name), "mtime": mtime} for name, mtime in rows]

        return await self._sessions.read(work)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        project = to_plain(read_project(project_key))

        async def work(tx: Transaction) -> list[SessionSummaryEntry]:
            rows = await tx.run(
                "SELECT session_id, mtime, CAST(summary AS TEXT) FROM steersman_sessions"
                " WHERE project_key = ? AND subpath = '' AND summary IS NOT NULL",
                project,
            )
            return [
                {"session_id": from_plain(name), "mtime": mtime, "data": _json.loads(data.encode())}
                for name, mtime, data in rows
            ]

        return await self._sessions.read(work)

    async def delete(self, key: SessionKey) -> None:
        place = place_of(key)
        project, session, subpath = _names(place)
        known: list[int] | None = None

        async def work(tx: Transaction) -> None:
            nonlocal known
            await tx.lock(place.project, place.session)
            if known is None:
                named = f"SELECT id {WHERE} AND (? = '' OR subpath = ?)"
                found = await tx.run(named, project, session, subpath, subpath)
                known = [number for (number,) in found]
            # By number: another process may have begun the session anew by the second time.
            for number in known:
                await tx.run("DELETE FROM steersman_sessions WHERE id = ?", number)

        await self._sessions.write(work)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        project, session, _ = _names(session_of(key))

        async def work(tx: Transaction) -> list[str]:
            rows = await tx.run(
                f"SELECT subpath {WHERE} AND subpath <> '' ORDER BY id", project, session
            )
            return [from_plain(subpath) for (subpath,) in rows]

        return await self._sessions.read(work)

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        place = place_of(key)
        session = end = position = 0

        async def first(tx: Transaction) -> list[SessionStoreEntry]:
            nonlocal session, end
            session, end = await _found(tx, place)
            return await rest(tx) if end else []

        async def rest(tx: Transaction) -> list[SessionStoreEntry]:
            limits = (CHUNK_ENTRIES, CHUNK_SIZE) if self._sessions.is_server else (CHUNK_ENTRIES,)
            rows = await tx.scan(self._chunk, session, position, end, *limits)
            return next(chunks(text for (text,) in rows), list[SessionStoreEntry]())

        chunk = await self._sessions.read(first)
        while position < end:
            if not chunk:
                raise StoreError(f"the session {place.session} was deleted while it was read")
            position += len(chunk)
            yield chunk
            if position < end:
                chunk = await self._sessions.read(rest)

    async def positions(self, key: SessionKey) -> int:
        place = place_of(key)

        async def work(tx: Transaction) -> int:
            return (await _found(tx, place))[1]

        return await self._sessions.read(work)


async def _known(tx: Transaction, session: int, uuids: list[str]) -> list[str]:
    """Return those of the uuids that the session has."""
    known: list[str] = []
    for begin in range(0, len(uuids), MOST_ASKED):
        some = uuids[begin : begin + MOST_ASKED]
        marks = ",".join("?" * len(some))
        known += [uuid for (uuid,) in await tx.run(f"{KNOWN} IN ({marks})", session, *some)]
    return known


async def _add_to_file(tx: Transaction, session: int, count: int, fresh: list[Line]) -> None:
    for begin, some in _portions(fresh, MOST_ROWS):
        values: list[object] = []
        for at, line in enumerate(some, start=count + begin + 1):
            values += (session, at, line.uuid and to_plain(line.uuid), line.text.decode())
        await tx.run(ADD_TO_FILE + ", ".join([ROW] * len(some)), *values)


async def _found(tx: Transaction, place: Place) -> tuple[int, int]:
    """Return the number of a session and how many entries it has; zeros if there is none."""
    found = await tx.run(FIND, *_names(place))
    return found[0][:2] if found else (0, 0)


class _Batch:
    """Entries that are written together. Written again, they count once, also without a uuid."""

    def __init__(self, place: Place, lines: list[Line], *, is_for_server: bool) -> None:
        self._place = place
        self.lines = lines
        self._is_for_server = is_for_server
        self._name = str(uuid4()) if is_for_server else ""
        self._put_at: tuple[int, int] | None = None
        """Session and position of the first entry, by a transaction that may be committed."""

    async def write(self, tx: Transaction) -> None:
        """Write the lines that the session does not have yet."""
        place = self._place
        # Of the session with its parts. Also waits for the end of a transaction whose connection
        # was lost, and that the server still has.
        await tx.lock(place.project, place.session)
        if self._put_at is not None and await tx.run(WRITTEN, *self._put_at, self._name):
            return
        take, names = TAKE, _names(place)
        uuids = [to_plain(line.uuid) for line in self.lines if line.uuid is not None]
        values: tuple[object, ...] = names
        if self._is_for_server:
            take, values = TAKE_FROM_SERVER, (uuids or [""], *names)
        found = await tx.run(take, *values)
        if not found:
            await tx.run(ADD_SESSION, *names)
            found = await tx.run(take, *values)
        ((session, count, summary, before, now, *known),) = found
        stored = known[0] if known else await _known(tx, session, uuids)
        fresh = new_lines(self.lines, {from_plain(uuid) for uuid in stored})
        if not fresh:
            return
        self._put_at = session, count + 1
        mtime = max(int(now * 1000), before + 1)
        summary = _summary(place, summary, fresh, mtime)
        update = mtime, count + len(fresh), summary, session
        if self._is_for_server:
            await self._add_to_server(tx, session, count, fresh, update)
        else:
            await _add_to_file(tx, session, count, fresh)
            await tx.run(UPDATE, *update)

    async def _add_to_server(
        self,
        tx: Transaction,
        session: int,
        count: int,
        fresh: list[Line],
        update: tuple[object, ...],
    ) -> None:
        for begin, some in _portions(fresh, len(fresh)):
            name = None if begin else self._name
            uuids = [line.uuid and to_plain(line.uuid) for line in some]
            texts = [line.text.decode() for line in some]
            values = session, count + begin, name, uuids, texts
            if begin + len(some) < len(fresh):
                await tx.run(ADD_TO_SERVER, *values)
            else:
                await tx.run(ADD_LAST_TO_SERVER, *values, *update)


def _summary(place: Place, kept: str | None, fresh: Iterable[Line], mtime: int) -> str | None:
    if place.subpath:
        return None
    previous: SessionSummaryEntry | None = None
    if kept is not None:
        data = _json.loads(kept.encode())
        previous = {"session_id": place.session, "mtime": mtime, "data": data}
    row = fold(previous, place, [line.entry for line in fresh], mtime)
    return encode(row["data"]).decode()


def _portions(lines: list[Line], most: int) -> Iterator[tuple[int, list[Line]]]:
    """Return the lines in portions of some size, with where each begins."""
    begin, size = 0, 0
    for at, line in enumerate(lines):
        if at > begin and (size + len(line.text) > MOST_SENT or at == begin + most):
            yield begin, lines[begin:at]
            begin, size = at, 0
        size += len(line.text)
    yield begin, lines[begin:]


def _names(place: Place) -> tuple[str, str, str]:
    return to_plain(place.project), to_plain(place.session), to_plain(place.subpath)
