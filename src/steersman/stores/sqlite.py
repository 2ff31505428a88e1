"""A store in a SQLite file: the standard library's, in threads of the store's own.

The file is created with mode 0600, which SQLite gives to the files beside it, too. SQLite sends no
notifications: while there are observers, its `data_version` is looked at a few times per second; it
changes when another connection has written.

Leases count by the time since the boot of the machine, which cannot be set as the clock can. All
processes of a machine add the same beginning to it, which the file keeps.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from steersman._process import since_boot
from steersman.errors import StoreError, StoreTooNew, UsageError
from steersman.ports import Clock
from steersman.stores._sql.database import Database, Rows, Work
from steersman.stores._sql.schema import SQLITE as MIGRATIONS
from steersman.stores._sql.store import REST, SqlStore
from steersman.stores.entry_json import check_timeout


class SqliteStore(SqlStore):
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
        super().__init__(
            SqliteDatabase(self.path, timeout),
            SqliteDatabase(self.path, timeout, name="steersman-sqlite-store", rest=REST),
            self.path,
        )

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"


T = TypeVar("T")

log = logging.getLogger("steersman.stores")

OWNER_ONLY = 0o600
OTHERS = 0o077
SOON, LATE = 0.05, 0.2
"""Seconds between two looks: after a change, and when nothing has changed for a while."""
SLOWER = 1.1
"""How much longer each wait is than the one before."""
LONGEST_LEASE = 600.0
"""Seconds that a lease of another boot may be valid in this one; its owner can hardly live."""
MOST_BOOTS = 100

SINCE = "SELECT since FROM steersman_boots WHERE boot = ?"

OnConnection = Callable[[sqlite3.Connection], T]
BootClock = Callable[[], tuple[str, float] | None]
"""Returns the id of this boot and the seconds since; None if leases count by the other clock."""

_lost: list[sqlite3.Connection] = []
"""Connections of a parent process. SQLite allows a forked process not even to close them."""


class SqliteDatabase(Database):
    """A `Database` in a SQLite file. Work on it waits in the thread, and nothing else runs there.

    With another `clock` than the machine's, leases count by it as well, unless `boot` is given.
    """

    def __init__(
        self,
        path: Path,
        timeout: float,
        clock: Clock = time.time,
        boot: BootClock | None = None,
        *,
        name: str = "steersman-inbox",
        rest: float = 1.0,
    ) -> None:
        self._file = SqliteFile(path, timeout)
        super().__init__(name, self._file.aclose, rest)
        self._clocks = clock, boot or (since_boot if clock is time.time else _unknown)

    async def read(self, work: Work[T]) -> T:
        return await self.home.do(self._read, work)

    async def write(self, work: Work[T], *, is_vital: bool = False) -> T:
        return await self.home.do(self._write, work, is_vital=is_vital)

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self.home.do(_run, work)

    def _read(self, work: Work[T]) -> T:
        return self._file.read(lambda found: _through(work(_Transaction(found, *self._clocks))))

    def _write(self, work: Work[T], *, is_vital: bool) -> T:
        if is_vital:
            self._set("synchronous = FULL")
        try:
            tx, done = self._file.write(lambda found: self._work_in(found, work))
        finally:
            if is_vital:
                self._set("synchronous = NORMAL")
        if tx.is_change:
            # `data_version` counts what others have written.
            self._notify()
        return done

    def _work_in(self, connection: sqlite3.Connection, work: Work[T]) -> tuple[_Transaction, T]:
        tx = _Transaction(connection, *self._clocks)
        return tx, _through(work(tx))

    def _set(self, pragma: str) -> None:
        self._file.read(lambda connection: connection.execute(f"PRAGMA {pragma}"))

    async def _signal(self, changed: Callable[[], None]) -> None:
        seen, wait = None, SOON
        while True:
            await asyncio.sleep(wait)
            try:
                version = self._file.read(_data_version)
                # In a file that has replaced another the number may be the same.
                found = self._file.identity, version
            except StoreError:
                found = None
            if found is None or found != seen:
                changed()
            wait = SOON if found != seen else min(wait * SLOWER, LATE)
            seen = found


def _data_version(connection: sqlite3.Connection) -> tuple[Any, ...]:
    found: tuple[Any, ...] = connection.execute("PRAGMA data_version").fetchone()
    return found


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return _through(work())


def _through(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, and return what it returns."""
    try:
        work.send(None)
    except StopIteration as ended:
        found: T = ended.value
        return found
    work.close()
    raise AssertionError("work on a database has waited for something else")


class _Transaction:
    """The port `Transaction` on a connection."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, boot: BootClock) -> None:
        self._connection = connection
        self._clock = clock
        self._boot = boot
        self.is_change = False
        """Whether it has the number of a change, which observers look for."""

    async def run(self, statement: str, *values: Any) -> Rows:
        ours, places = _placed(statement)
        given = self._filled(places, values) if places else values
        return self._connection.execute(ours, given).fetchall()

    async def scan(self, statement: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        ours, places = _placed(statement)
        return self._connection.execute(ours, self._filled(places, values) if places else values)

    async def next_change(self, *also: str) -> int:
        self.is_change = True
        for statement in ("UPDATE steersman_ask_changes SET last = last + 1", *also):
            await self.run(statement)
        ((change,),) = await self.run("SELECT last FROM steersman_ask_changes")
        return int(change)

    async def lock(self, *names: str) -> None:
        """Do nothing: a file has one writer at a time."""

    def _filled(self, places: tuple[str, ...], values: tuple[Any, ...]) -> list[Any]:
        given = iter(values)
        return [next(given) if each == "?" else self._time(each) for each in places]

    def _time(self, which: str) -> float:
        wall = float(self._clock())
        found = self._boot() if which == ":lease" else None
        if found is None:
            return wall
        boot, seconds = found
        rows = self._connection.execute(SINCE, (boot,)).fetchall()
        if not rows:
            rows = _begin_boot(self._connection, boot, wall - seconds, wall)
        ((since,),) = rows
        return float(since) + seconds


@lru_cache(maxsize=256)
def _placed(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement that is the same at all times, and which of its values are a time.

    A connection keeps statements that it has prepared, by their text. Without a time, no places.
    """
    places = tuple(re.findall(r"\?|:now|:lease", statement))
    has_time = set(places) - {"?"}
    return re.sub(":now|:lease", "?", statement), places if has_time else ()


def _begin_boot(
    connection: sqlite3.Connection, boot: str, since: float, now: float
) -> list[tuple[float]]:
    """Keep when a boot began, for all processes; returns the row, which another may have written.

    Leases of another boot stay valid for a while: a file can be on a disk that two machines share,
    and the machine of an owner may still run. A clock that was wrong does not make it longer.
    """
    added = "INSERT INTO steersman_boots VALUES (?, ?) ON CONFLICT DO NOTHING"
    connection.execute(added, (boot, since))
    for table in ("steersman_conversations", "steersman_workers"):
        connection.execute(
            f"UPDATE {table} SET lease_until = ? WHERE lease_until > ?",  # noqa: S608 - ours
            (now + LONGEST_LEASE, now + LONGEST_LEASE),
        )
    connection.execute(
        "DELETE FROM steersman_boots WHERE rowid <= (SELECT max(rowid) FROM steersman_boots) - ?",
        (MOST_BOOTS,),
    )
    return connection.execute(SINCE, (boot,)).fetchall()


def _unknown() -> None:
    """Know no boot."""


class SqliteFile:
    """A connection to a file, used in one thread at a time."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self.identity: tuple[int, int] | None = None
        """Which file is open; another one may take its place."""
        self._was_open = False

    # Functions and no context managers, which would cost more than many a statement.

    def read(self, function: OnConnection[T]) -> T:
        """Call `function` with the connection and return its result. Raises `StoreError`."""
        try:
            return function(self._open())
        except (sqlite3.Error, OSError) as error:
            raise self._in_words(error) from error

    def write(self, function: OnConnection[T]) -> T:
        """As `read`, in a transaction: all of it is stored, or nothing."""
        try:
            return _in_transaction(self._open(), function)
        except (sqlite3.Error, OSError) as error:
            raise self._in_words(error) from error

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

    async def aclose(self) -> None:
        """As `close`, which does not wait."""
        self.close()

    def _open(self) -> sqlite3.Connection:
        """Return the connection to the file that is there now."""
        found = _identity(self.path)
        if self._was_open and found is None:
            self.close()
            raise StoreError(
                f"{self.path} was removed while it was in use",
                hint="put the file back; a new store for this path begins an empty one",
            )
        if self._connection is not None and (self._pid, self.identity) == (os.getpid(), found):
            return self._connection
        if self.identity not in (None, found):
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
        self.identity, self._was_open = _identity(self.path), True
        return connection

    def _create(self, found: tuple[int, int] | None) -> None:
        # Never opened here if it exists: closing it would release the locks that other connections
        # of this process hold on it.
        if found is None:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        elif self.path.stat().st_mode & OTHERS:
            self.path.chmod(OWNER_ONLY)

    def _in_words(self, error: sqlite3.Error | OSError) -> StoreError:
        if isinstance(error, sqlite3.Error):
            return StoreError(f"{self.path}: {error}", hint=self._hint(error))
        said = error.strerror or error
        return StoreError(f"{self.path}: {said}", hint="check the folder and its mode")

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
    _in_transaction(connection, lambda _: _migrate(connection, where))


def _migrate(connection: sqlite3.Connection, where: str) -> None:
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


def _in_transaction(connection: sqlite3.Connection, function: OnConnection[T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = function(connection)
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, as that of a full disk, SQLite has rolled back by itself.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    return done
