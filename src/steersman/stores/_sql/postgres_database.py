"""The database on a PostgreSQL server: a few connections, replaced when it was restarted.

Nothing that is raised here has the password, nor the URL, which messages of the driver can quote:
so an error of the driver is neither cause nor context of what is raised.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict

from steersman.errors import StoreError, StoreTooNew, UsageError
from steersman.stores._sql.database import Database, Rows, Work, to_plain
from steersman.stores._sql.schema import POSTGRES as MIGRATIONS
from steersman.stores.entry_json import encode

T = TypeVar("T")
Connection = AsyncConnection[tuple[Any, ...]]
OnConnection = Callable[[Connection], Awaitable[T]]

CONNECT_TIMEOUT = 10
CLOSING = 1.0
"""Seconds that a connection which was cut off has to notice it."""
MIGRATION_LOCK = 7_236_811_945_201_337
"""The advisory lock of all who migrate; any number that nothing else uses."""
HIDDEN = "***"
SHOWN = ("host", "hostaddr", "port", "dbname", "user")

NOW = "extract(epoch FROM clock_timestamp())::double precision"
COUNT = "UPDATE steersman_ask_changes SET last = last + 1"
# The notification is sent when the transaction is committed.
COUNTED = "SELECT last, pg_notify('steersman_asks', '') FROM steersman_ask_changes"
FIRST_RETRY, LAST_RETRY = 0.05, 1.0
"""Seconds until a lost connection is made again."""
DOUBT = (0.1, 0.5)
"""Seconds after which a write is made again whose confirmation was lost."""

_lost: list[Connection] = []
"""Connections of a parent process: closing them here would end them there."""


@dataclass(frozen=True, slots=True)
class Looks:
    """When the table is looked at although no notification came: it may have been missed."""

    early: float = 5.0
    """Seconds between two looks after a connection was made."""
    until: float = 60.0
    """For how many seconds that is early."""
    late: float = 30.0


class PostgresDatabase(Database):
    """A `Database` in PostgreSQL: `NOTIFY` with every change, `LISTEN` while there are observers.

    Times are those of the server. A write whose confirmation was lost is made again: tables make
    sure that it counts once. It has up to `connections`, besides the one that receives
    notifications.
    """

    is_server = True

    def __init__(
        self,
        url: str,
        timeout: float,
        connections: int,
        looks: Looks | None = None,
        *,
        name: str = "steersman-inbox",
        rest: float = 1.0,
    ) -> None:
        self._connections = Connections(url, timeout, connections)
        super().__init__(name, self._connections.close_idle, rest)
        self.server = self._connections.server
        self._looks = looks or Looks()
        self._is_migrated = False

    async def read(self, work: Work[T]) -> T:
        async def reading(connection: Connection) -> T:
            await self._prepare(connection)
            return await work(_Transaction(connection, is_begun=True))

        return await self.home.call(lambda: self._connections.run(reading))

    async def write(self, work: Work[T], *, is_vital: bool = False) -> T:
        del is_vital  # every commit survives a loss of power, if the server is set up for it
        return await self.home.call(lambda: self._write(work))

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self.home.call(work)

    async def _write(self, work: Work[T]) -> T:
        is_in_doubt = is_change = False

        async def writing(connection: Connection) -> T:
            nonlocal is_in_doubt, is_change
            await self._prepare(connection)
            tx = _Transaction(connection, is_begun=False)
            # If this raises, the connection is closed, and the server rolls back.
            found = await work(tx)
            is_change = tx.is_change
            # If the connection is lost from here on, only the server knows what became of it. It
            # is not asked by the id of the transaction: after a crash it gives such ids again.
            is_in_doubt = True
            await connection.execute("COMMIT", prepare=False)
            return found

        for wait in (*DOUBT, None):
            try:
                found = await self._connections.run(writing)
            except StoreError:
                if not is_in_doubt:
                    raise
            else:
                if is_change:
                    # Sooner than the notification comes back.
                    self._notify()
                return found
            if wait is not None:
                await asyncio.sleep(wait)
        raise StoreError(
            f"{self.server} was lost during a commit, and it is not known whether the change was"
            " stored",
            hint="look again when the server is back; a batch may be sent again: a uuid is stored"
            " once",
        )

    async def _signal(self, changed: Callable[[], None]) -> None:
        retry = FIRST_RETRY
        while True:
            try:
                async with await self._connections.connect() as connection:
                    await connection.execute("LISTEN steersman_asks")
                    retry = FIRST_RETRY
                    # What came before the connection was made, or while it was lost.
                    changed()
                    await self._receive(connection, changed)
            except (psycopg.Error, StoreError, OSError):
                changed()
                await asyncio.sleep(retry)
                retry = min(2 * retry, LAST_RETRY)

    async def _receive(self, connection: Connection, changed: Callable[[], None]) -> None:
        """Call `changed` after each notification, and now and then without one, until it fails."""
        clock, looks = asyncio.get_running_loop().time, self._looks
        early_until = clock() + looks.until
        while True:
            wait = looks.early if clock() < early_until else looks.late
            async for _ in connection.notifies(timeout=wait, stop_after=1):
                break
            else:
                # Silence: a connection can be dead without an error.
                await self._check_alive(connection)
            changed()

    async def _check_alive(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(self._connections.timeout):
                await connection.execute("SELECT 1")
        except TimeoutError:
            # Not by the driver's own way, which waits for the server.
            connection.pgconn.finish()
            raise StoreError(f"{self.server} does not answer") from None

    async def _prepare(self, connection: Connection) -> None:
        if not self._is_migrated:
            await _migrate(connection, self.server)
            self._is_migrated = True


class _Transaction:
    """The port `Transaction` on a connection; unless it is begun, with the first statement."""

    def __init__(self, connection: Connection, *, is_begun: bool) -> None:
        self._connection = connection
        self._is_begun = is_begun
        self.is_change = False
        """Whether it has the number of a change, which observers look for."""

    async def run(self, statement: str, *values: Any) -> Rows:
        if not values:
            return await self._run_all(_ours(statement))
        await self._begin()
        # A list is sent in binary: the driver takes longer to escape it than the server to store.
        ours = _ours(statement, tuple(isinstance(each, list) for each in values))
        cursor = await self._connection.execute(ours, values)
        return [] if cursor.description is None else await cursor.fetchall()

    async def scan(self, statement: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        await self._begin()
        async with self._connection.cursor(binary=True) as cursor:
            await cursor.execute(_ours(statement, tuple(False for _ in values)), values)
            return await cursor.fetchall()

    async def next_change(self, *also: str) -> int:
        self.is_change = True
        # One way to the server and back; a transaction begins with it.
        ((change, _),) = await self.run("; ".join((COUNT, *also, COUNTED)))
        return int(change)

    async def lock(self, *names: str) -> None:
        # As above.
        name = to_plain(encode([*names]).decode())
        quoted = sql.Literal(name).as_bytes(self._connection)
        await self._run_all(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))" % quoted)

    async def _run_all(self, statements: bytes) -> Rows:
        """Run statements without values: several at once cannot be prepared, nor have any."""
        begin, self._is_begun = b"" if self._is_begun else b"BEGIN; ", True
        cursor = await self._connection.execute(begin + statements, prepare=False)
        while cursor.nextset():
            continue
        return [] if cursor.description is None else await cursor.fetchall()

    async def _begin(self) -> None:
        if not self._is_begun:
            await self._connection.execute("BEGIN", prepare=False)
            self._is_begun = True


@lru_cache(maxsize=256)
def _ours(statement: str, are_lists: tuple[bool, ...] = ()) -> bytes:
    """Return a statement as the driver takes it."""
    dated = statement.replace(":now", NOW).replace(":lease", NOW)
    if not are_lists:
        return dated.encode()
    parts = dated.split("?")
    marks = ["%b" if each else "%s" for each in are_lists]
    return "".join(each for pair in zip(parts, [*marks, ""], strict=True) for each in pair).encode()


class Connections:
    """Runs work on a connection, and takes another one if that was lost before the work began.

    There are `most` of them at once, all in one event loop.
    """

    def __init__(self, url: str, timeout: float, most: int) -> None:
        self._url = url
        self.timeout = timeout
        self._most = most
        self._idle: list[Connection] = []
        self._room = asyncio.Semaphore(most)
        self._pid = os.getpid()
        self._secrets, self.server = _read_url(url)

    async def run(self, work: OnConnection[T]) -> T:
        """Run `work`, within `timeout`. Raises `StoreError`; a lost connection was then replaced.

        Work that takes too long is cut off from the server, which rolls back what was not
        committed.
        """
        self._check_pid()
        failed: StoreError
        try:
            async with asyncio.timeout(self.timeout), self._room:
                return await self._try(work)
        except TimeoutError:
            failed = StoreError(
                f"{self.server} did not answer within {self.timeout:g} s",
                hint="check the server and its locks, or raise timeout=",
            )
        except psycopg.Error as error:
            failed = self._in_words(error)
        # Raised here, because an error keeps the one that was handled where it was raised.
        raise failed

    async def _try(self, work: OnConnection[T]) -> T:
        while self._idle:
            connection = self._idle.pop()
            if connection.closed:
                continue
            try:
                return await self._use(connection, work)
            except psycopg.OperationalError:
                if not connection.closed:
                    raise
                # The server was restarted since: the next one is new, or as old as this.
        return await self._use(await self.connect(), work)

    async def connect(self) -> Connection:
        """Return a new connection, which the caller closes. Raises what the driver raises."""
        return await AsyncConnection.connect(
            self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT
        )

    async def _use(self, connection: Connection, work: OnConnection[T]) -> T:
        task = asyncio.Task(_run(work, connection))
        try:
            result = await asyncio.shield(task)
        except BaseException:
            if not task.done():
                # Not by the driver's own way, which waits for the server.
                connection.pgconn.finish()
                task.cancel()
                await asyncio.wait({task}, timeout=CLOSING)
            await connection.close()
            raise
        self._idle.append(connection)
        return result

    async def close_idle(self) -> None:
        """Close the connections that nothing uses now. The next ones may be of another loop."""
        self._check_pid()
        while self._idle:
            await self._idle.pop().close()
        self._room = asyncio.Semaphore(self._most)

    def _check_pid(self) -> None:
        if self._pid != os.getpid():
            _lost.extend(self._idle)
            self._idle, self._room = [], asyncio.Semaphore(self._most)
            self._pid = os.getpid()

    def _in_words(self, error: psycopg.Error) -> StoreError:
        # Only the first line: the others can quote what was stored.
        said = error.diag.message_primary or str(error).strip().partition("\n")[0]
        for secret in self._secrets:
            said = said.replace(secret, HIDDEN)
        return StoreError(
            f"{self.server}: {said or type(error).__name__}",
            hint="nothing of the batch was stored; check the server and the rights of its user",
        )


async def _run(work: OnConnection[T], connection: Connection) -> T:
    return await work(connection)


def _read_url(url: str) -> tuple[list[str], str]:
    """Return the strings that must not be shown, longest first, and the name of the server."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        parts = None
    if parts is None or not url.startswith(("postgresql://", "postgres://")):
        raise UsageError(
            "url", HIDDEN, "a URL as postgresql://user@host:5432/database", hint="check its form"
        )
    hidden = {str(value) for name, value in parts.items() if name not in SHOWN and value}
    secrets = {url, unquote(url), *hidden, *(part for part in (_password(url),) if part)}
    place = parts.get("host") or parts.get("hostaddr") or "the default host"
    return sorted(secrets, key=len, reverse=True), f"PostgreSQL at {place}"


def _password(url: str) -> str:
    """Return the password as the URL spells it."""
    account = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
    return account.partition(":")[2]


async def _migrate(connection: Connection, where: str) -> None:
    """Create the tables, or bring them to this release. Raises `StoreTooNew` for later ones."""
    if await _version(connection, where) == len(MIGRATIONS):
        return
    found = await connection.execute("SHOW server_encoding")
    encoding = (await found.fetchone() or ("",))[0]
    if encoding != "UTF8":
        raise StoreError(
            f"{where}: the database has the encoding {encoding}; strings need UTF8",
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
