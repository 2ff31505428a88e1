"""Sessions in PostgreSQL, for machines that share them. Needs the extra `postgres` (psycopg 3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import uuid4

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
from steersman.stores.postgres_tables import migrate
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
    from steersman.stores.ask_table import AskTable
    from steersman.stores.postgres_connections import Connection
    from steersman.stores.stored_journal import StoredJournal

__all__ = ["PostgresStore"]

FEWEST_CONNECTIONS = 2
MOST_SENT = 16 << 20
"""Bytes of entries in one statement."""

FIND = (
    "SELECT id, entries FROM steersman_sessions"
    " WHERE project_key = %s AND session_id = %s AND subpath = %s"
)
TAKE = (
    "INSERT INTO steersman_sessions AS kept (project_key, session_id, subpath, mtime, entries)"
    " VALUES (%s, %s, %s, 0, 0) ON CONFLICT (project_key, session_id, subpath)"
    " DO UPDATE SET mtime = kept.mtime"
    " RETURNING id, entries, summary::text,"
    " greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, mtime + 1)"
)
ADD = (
    "INSERT INTO steersman_session_entries (session, position, uuid, size, entry, batch)"
    " SELECT %s, %s + place, uuid, octet_length(entry), entry::json,"
    " CASE WHEN place = 1 THEN %s END"
    # Binary, because psycopg takes longer to escape an array as text than the server to store it.
    " FROM unnest(%b::text[], %b::text[]) WITH ORDINALITY AS new (uuid, entry, place)"
)
# Not the id of the transaction: a server that has crashed gives such ids again.
WRITTEN = (
    "SELECT 1 FROM steersman_session_entries WHERE session = %s AND position = %s AND batch = %s"
)
CHUNK = (
    "SELECT convert_to(entry::text, 'UTF8') FROM ("
    " SELECT position, entry, sum(size) OVER (ORDER BY position) - size AS before"
    " FROM steersman_session_entries WHERE session = %s AND position > %s AND position <= %s"
    " ORDER BY position LIMIT %s) AS next WHERE before < %s ORDER BY position"
)


class PostgresStore:
    """A `SessionStore` in a PostgreSQL database, for any number of machines.

    `url` is `postgresql://user:password@host:port/database`; it is never shown. The tables are
    created at the first use. `timeout` is how long each operation may take. Errors are
    `StoreError`, and then nothing was stored.

    It has up to `connections` to the server for asks, leases, turns and journals, one of which
    receives notifications, and one less for the entries of sessions in each event loop.
    """

    def __init__(self, url: str, *, timeout: float = 30.0, connections: int = 4) -> None:
        check_timeout(timeout)
        _check_connections(connections)
        try:
            from steersman.stores.postgres_connections import Connections  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise UsageError(
                "PostgresStore",
                f"no psycopg ({error})",
                "with the extra `postgres`",
                hint="pip install steersman[postgres]",
            ) from None
        self._connections = Connections(url, timeout, connections - 1)
        self._is_migrated = False
        self._make_asks = lambda: _asks(url, timeout, connections)
        self._asks: AskKeeper | None = None

    def __repr__(self) -> str:
        return f"<PostgresStore: {self._connections.name}>"

    async def __aenter__(self) -> Self:
        await self._connections.run(self._prepare)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop. May be called again."""
        if self._asks is not None:
            await self._asks.aclose()
        await self._connections.close()

    def inbox(self, *, expires_after: float | None = None) -> StoredInbox:
        """Return an inbox whose asks are in this database: any machine that has it can answer them.

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

        if self._asks is None:
            self._asks = AskKeeper(self._make_asks)
        return self._asks

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        place, lines = place_of(key), lines_of(entries)
        if not lines:
            return
        batch = str(uuid4())
        doubt: _Written | None = None

        async def write(connection: Connection) -> None:
            nonlocal doubt
            await self._prepare(connection)
            await connection.execute("BEGIN")
            try:
                written = await _append(connection, place, lines, batch, doubt)
            except BaseException:
                if not connection.closed:
                    await connection.execute("ROLLBACK")
                raise
            # If the connection is lost from here on, only the server knows what became of it.
            doubt = written
            await connection.execute("COMMIT")
            doubt = None

        try:
            await self._connections.run(write)
        except StoreError:
            if doubt is None:
                raise
            await self._settle(write)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return [entry async for chunk in self.stream(key) for entry in chunk] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        rows = await self._rows(
            "SELECT session_id, mtime FROM steersman_sessions"
            " WHERE project_key = %s AND subpath = ''",
            to_plain(read_project(project_key)),
        )
        return [{"session_id": from_plain(name), "mtime": mtime} for name, mtime in rows]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        rows = await self._rows(
            "SELECT session_id, mtime, summary::text FROM steersman_sessions"
            " WHERE project_key = %s AND subpath = '' AND summary IS NOT NULL",
            to_plain(read_project(project_key)),
        )
        return [
            {"session_id": from_plain(name), "mtime": mtime, "data": _json.loads(data.encode())}
            for name, mtime, data in rows
        ]

    async def delete(self, key: SessionKey) -> None:
        place = place_of(key)
        project, session, subpath = _names(place)

        is_in_doubt = False

        async def remove(connection: Connection) -> None:
            nonlocal is_in_doubt
            await self._prepare(connection)
            # Not the driver's own block: its error does not show whether the commit was sent.
            await connection.execute("BEGIN")
            try:
                await _lock(connection, place)
                await connection.execute(
                    "DELETE FROM steersman_sessions WHERE project_key = %s AND session_id = %s"
                    " AND (%s = '' OR subpath = %s)",
                    (project, session, subpath, subpath),
                )
            except BaseException:
                if not connection.closed:
                    await connection.execute("ROLLBACK")
                raise
            is_in_doubt = True
            await connection.execute("COMMIT")
            is_in_doubt = False

        try:
            await self._connections.run(remove)
        except StoreError:
            if not is_in_doubt:
                raise
            raise StoreError(
                f"{self._connections.name} was lost during a commit, and it is not known whether"
                " the session was deleted",
                hint="delete it again: what is not there stays so",
            ) from None

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        project, session, _ = _names(session_of(key))
        rows = await self._rows(
            "SELECT subpath FROM steersman_sessions"
            " WHERE project_key = %s AND session_id = %s AND subpath <> '' ORDER BY id",
            project,
            session,
        )
        return [from_plain(subpath) for (subpath,) in rows]

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        place = place_of(key)
        found = await self._rows(FIND, *_names(place))
        session, end = found[0] if found else (0, 0)
        position = 0
        while position < end:
            rows = await self._rows(CHUNK, session, position, end, CHUNK_ENTRIES, CHUNK_SIZE)
            if not rows:
                raise StoreError(f"the session {place.session} was deleted while it was read")
            yield [decode(text) for (text,) in rows]
            position += len(rows)

    async def positions(self, key: SessionKey) -> int:
        found = await self._rows(FIND, *_names(place_of(key)))
        return int(found[0][1]) if found else 0

    async def _settle(self, write: Callable[[Connection], Awaitable[None]]) -> None:
        """Write a batch again whose commit was not confirmed, unless it is there."""
        try:
            await self._connections.run(write)
        except StoreError:
            raise StoreError(
                f"{self._connections.name} was lost during a commit, and it is not known whether"
                " the batch was stored",
                hint="send the batch again: a uuid is stored once",
            ) from None

    async def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        async def read(connection: Connection) -> list[tuple[Any, ...]]:
            await self._prepare(connection)
            async with connection.cursor(binary=True) as cursor:
                await cursor.execute(statement.encode(), values)
                return await cursor.fetchall()

        return await self._connections.run(read)

    async def _prepare(self, connection: Connection) -> None:
        if not self._is_migrated:
            await migrate(connection, self._connections.name)
            self._is_migrated = True


def _check_connections(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < FEWEST_CONNECTIONS:
        allowed = f"a number, {FEWEST_CONNECTIONS} or more: one of them receives notifications"
        raise UsageError("connections", given, allowed)


def _asks(url: str, timeout: float, connections: int) -> AskTable:
    from steersman.stores.postgres_asks import postgres_asks  # noqa: PLC0415 - an extra

    return postgres_asks(url, timeout, connections)


class _Written(NamedTuple):
    """Where the first entry of a batch was put, by a transaction that may not be committed."""

    session: int
    position: int


async def _append(
    connection: Connection, place: Place, lines: list[Line], batch: str, doubt: _Written | None
) -> _Written | None:
    """Write the lines that the key does not have yet; returns where, or None without any.

    With `doubt`, lines that this batch has put there are left as they are.
    """
    # Also waits for the end of a transaction whose connection was lost, and that the server has.
    await _lock(connection, place)
    if doubt is not None:
        found = await connection.execute(WRITTEN.encode(), (*doubt, batch))
        if await found.fetchone() is not None:
            return doubt
    row = await (await connection.execute(TAKE.encode(), _names(place))).fetchone()
    assert row is not None
    session, count, summary, mtime = row
    asked = await connection.execute(
        "SELECT uuid FROM steersman_session_entries WHERE session = %s AND uuid = ANY(%s)",
        (session, [to_plain(line.uuid) for line in lines if line.uuid is not None]),
    )
    known = {from_plain(uuid) for (uuid,) in await asked.fetchall()}
    fresh = new_lines(lines, known)
    for begin, some in _portions(fresh):
        uuids = [line.uuid and to_plain(line.uuid) for line in some]
        texts = [line.text.decode() for line in some]
        named = None if begin else batch
        await connection.execute(ADD, (session, count + begin, named, uuids, texts))
    if not fresh:
        return None
    await connection.execute(
        "UPDATE steersman_sessions SET mtime = %s, entries = %s, summary = %s::json WHERE id = %s",
        (mtime, count + len(fresh), _summary(place, summary, fresh, mtime), session),
    )
    return _Written(session, count + 1)


async def _lock(connection: Connection, place: Place) -> None:
    """Hold the lock of a session, with its parts, until the end of the transaction."""
    name = encode([place.project, place.session]).decode()
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (to_plain(name),)
    )


def _summary(place: Place, kept: str | None, fresh: Iterable[Line], mtime: int) -> str | None:
    if place.subpath:
        return None
    previous: SessionSummaryEntry | None = None
    if kept is not None:
        data = _json.loads(kept.encode())
        previous = {"session_id": place.session, "mtime": mtime, "data": data}
    row = fold(previous, place, [line.entry for line in fresh], mtime)
    return encode(row["data"]).decode()


def _portions(lines: list[Line]) -> Iterator[tuple[int, list[Line]]]:
    """Return the lines in portions of some size, with where each begins."""
    begin, size = 0, 0
    for at, line in enumerate(lines):
        if size + len(line.text) > MOST_SENT and at > begin:
            yield begin, lines[begin:at]
            begin, size = at, 0
        size += len(line.text)
    if lines:
        yield begin, lines[begin:]


def _names(place: Place) -> tuple[str, str, str]:
    return to_plain(place.project), to_plain(place.session), to_plain(place.subpath)
