"""What the CLI says to the tool servers of this process, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from steersman._protocol.events import ToolCalled
from steersman.ports import INTERNAL_ERROR, Caller, JsonObject, ToolServer, jsonrpc_error

__all__ = ["ToolServers"]

DETACHING = 10.0
"""How long a server may take to let a session go."""


class ToolServers:
    """Hands each message to the server that it is for. Every message is answered."""

    def __init__(
        self,
        servers: Mapping[str, ToolServer],
        callers: Mapping[str, Caller],
        report: Callable[[str, BaseException | str], None],
    ) -> None:
        self._servers = dict(servers)
        self._callers = dict(callers)
        self._report = report
        self._attached: list[str] = []

    async def attach(self) -> None:
        """Tell every server that this session begins. Raises `McpNotReady`."""
        for key, server in self._servers.items():
            self._attached.append(key)
            await server.attach(self._callers[key])

    async def detach(self) -> None:
        """Tell every server that was told of its beginning that this session is over."""
        attached, self._attached = self._attached, []
        for key in attached:
            await self._detach(self._servers[key], self._callers[key])

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the servers in this process."""
        return tuple(self._servers)

    async def add(self, server: ToolServer, caller: Caller) -> None:
        """Serve one more, under the caller's key. Raises `McpNotReady`; then it is not served."""
        try:
            await server.attach(caller)
        except BaseException:
            await self._detach(server, caller)
            raise
        self._servers[caller.server], self._callers[caller.server] = server, caller
        self._attached.append(caller.server)

    async def remove(self, key: str) -> None:
        """Serve one no more."""
        server, caller = self._servers.pop(key), self._callers.pop(key)
        if key in self._attached:
            self._attached.remove(key)
            await self._detach(server, caller)

    async def _detach(self, server: ToolServer, caller: Caller) -> None:
        try:
            async with asyncio.timeout(DETACHING):
                await server.detach(caller)
        except Exception as error:  # noqa: BLE001 - a server of the caller's; others must hear of it too
            self._report(f"tool server {caller.server!r}", error)

    def name_session(self, session_id: str) -> None:
        """The conversation's id is known, or another one than before."""
        for caller in self._callers.values():
            caller.session_id = session_id

    async def answer(self, asked: ToolCalled) -> JsonObject:
        """The server's answer, or an error in the words of JSON-RPC."""
        request_id = asked.message.get("id")
        server = self._servers.get(asked.server)
        if server is None:
            return jsonrpc_error(
                request_id, INTERNAL_ERROR, f"no tool server is called {asked.server!r} here"
            )
        try:
            reply = await server.handle(asked.message, self._callers[asked.server])
        except Exception as error:  # noqa: BLE001 - a server of the caller's; the CLI must hear of it
            self._report(f"tool server {asked.server!r}", error)
            return jsonrpc_error(
                request_id, INTERNAL_ERROR, f"the tool server failed: {type(error).__name__}"
            )
        # Notifications too must be answered, or the CLI waits until a timeout.
        return reply if reply is not None else {"jsonrpc": "2.0", "result": {}}
