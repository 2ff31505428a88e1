"""One connection for many users: dialled when needed, again when lost, let go with the last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steersman.errors import McpNotReady, UsageError
from steersman.tools._mcp.connect import Remote

__all__ = ["Line"]


class Line:
    """Keeps what `dial` gives; `pause` is the time after a failure in which calls do not dial."""

    def __init__(self, dial: Callable[[str], Awaitable[Remote]], pause: float) -> None:
        self._dial = dial
        self._pause = pause
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dialling = asyncio.Lock()
        self._remote: Remote | None = None
        self._failure: tuple[float, McpNotReady] | None = None

    @property
    def remote(self) -> Remote | None:
        """The connection, while there is one that works."""
        return self._remote if self._remote is not None and self._remote.is_open else None

    def join(self) -> None:
        """Somebody needs it, in this event loop; a connection cannot be had from two."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._users:
                raise UsageError("RemoteTools", "in use elsewhere", "one event loop at a time")
            self._loop, self._dialling, self._remote = loop, asyncio.Lock(), None
        self._users += 1

    async def leave(self) -> None:
        """One of those who joined needs it no more."""
        self._users -= 1
        if self._users:
            return
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.aclose()

    async def now(self, name: str) -> Remote:
        """The connection, dialled if there is none. Raises `McpNotReady`."""
        if self.remote is not None:
            return self.remote
        async with self._dialling:
            return self.remote or await self._dial_again(name)

    async def unless_just_failed(self, name: str) -> Remote:
        """The same, but fails at once while the last failure is fresh."""
        if self.remote is None and self._failure is not None:
            failed_at, failure = self._failure
            if asyncio.get_running_loop().time() < failed_at + self._pause:
                raise McpNotReady(name, failure.status, failure.error)
        return await self.now(name)

    async def _dial_again(self, name: str) -> Remote:
        lost, self._remote = self._remote, None
        if lost is not None:
            await lost.aclose()
        try:
            self._remote = await self._dial(name)
        except McpNotReady as failure:
            self._failure = (asyncio.get_running_loop().time(), failure)
            raise
        self._failure = None
        return self._remote
