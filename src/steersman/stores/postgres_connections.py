"""Connections to PostgreSQL: a few for each event loop, replaced when the server was restarted.

Nothing that is raised here has the password, nor the URL: texts of the driver can quote it. So what
the driver raised is neither cause nor context of what is raised.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from steersman.errors import StoreError, UsageError

__all__ = ["Connection", "Connections"]

T = TypeVar("T")
Connection = AsyncConnection[tuple[Any, ...]]
Work = Callable[[Connection], Awaitable[T]]

CONNECT_TIMEOUT = 10
CLOSING = 1.0
"""Seconds that a connection which was cut off has to notice it."""
HIDDEN = "***"
SHOWN = ("host", "hostaddr", "port", "dbname", "user")

_lost: list[Connection] = []
"""Connections of a parent process: closing them here would end them there."""


class _Pool:
    """The connections of one event loop."""

    def __init__(self, most: int) -> None:
        self.idle: list[Connection] = []
        self.room = asyncio.Semaphore(most)


class Connections:
    """Runs work on a connection, and takes another one if that was lost before the work began.

    An event loop has `most` of them at once.
    """

    def __init__(self, url: str, timeout: float, most: int) -> None:
        self._url = url
        self.timeout = timeout
        self._most = most
        self._pid = os.getpid()
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = (
            weakref.WeakKeyDictionary()
        )
        self._is_closed = False
        self._secrets, self.name = _read_url(url)

    async def run(self, work: Work[T]) -> T:
        """Run `work`, within `timeout`. Raises `StoreError`; a lost connection was then replaced.

        Work that is cancelled, or takes too long, is cut off from the server, which rolls back what
        was not committed.
        """
        if self._is_closed:
            raise StoreError(f"{self.name} is closed")
        failed: StoreError
        try:
            async with asyncio.timeout(self.timeout), self._pool().room:
                return await self._try(work)
        except TimeoutError:
            failed = StoreError(
                f"{self.name} did not answer within {self.timeout:g} s",
                hint="check the server and its locks, or raise timeout=",
            )
        except psycopg.Error as error:
            failed = self._in_words(error)
        # Raised here, because an error keeps the one that was handled where it was raised.
        raise failed

    async def _try(self, work: Work[T]) -> T:
        idle = self._pool().idle
        while idle:
            connection = idle.pop()
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

    async def _use(self, connection: Connection, work: Work[T]) -> T:
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
        self._pool().idle.append(connection)
        return result

    async def close(self) -> None:
        """Close the connections of this event loop, and run nothing more. May be called again."""
        self._is_closed = True
        await self.close_idle()

    async def close_idle(self) -> None:
        """Close the connections of this event loop that nothing uses now."""
        pool = self._pool()
        while pool.idle:
            await pool.idle.pop().close()

    def _pool(self) -> _Pool:
        if self._pid != os.getpid():
            _lost.extend(each for pool in self._pools.values() for each in pool.idle)
            self._pools = weakref.WeakKeyDictionary()
            self._pid = os.getpid()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = _Pool(self._most)
        return pool

    def _in_words(self, error: psycopg.Error) -> StoreError:
        # Only the first line: the others can quote what was stored.
        said = error.diag.message_primary or str(error).strip().partition("\n")[0]
        for secret in self._secrets:
            said = said.replace(secret, HIDDEN)
        return StoreError(
            f"{self.name}: {said or type(error).__name__}",
            hint="nothing of the batch was stored; check the server and the rights of its user",
        )


async def _run(work: Work[T], connection: Connection) -> T:
    return await work(connection)


def _read_url(url: str) -> tuple[list[str], str]:
    """Return what must not be shown, longest first, and how to call the server."""
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
