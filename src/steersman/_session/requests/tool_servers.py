"""Passes MCP messages of the CLI to the in-process MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from steersman._json import JsonDict
from steersman._protocol.events import ToolCalled
from steersman.ports import INTERNAL_ERROR, Caller, JsonObject, ToolServer, jsonrpc_error

__all__ = ["ToolServers"]

DETACHING = 10.0
"""Seconds that a server's `detach` may take."""


class ToolServers:
    """The in-process MCP servers of one session. Every message to them is answered."""

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
        self.external: dict[str, JsonDict] = {}
        """The external servers that were set at run time. They run in the CLI, not here."""

    async def attach(self) -> None:
        """Attach every server to this session. Raises `McpNotReady`."""
        for key, server in self._servers.items():
            self._attached.append(key)
            await server.attach(self._callers[key])

    async def detach(self) -> None:
        """Detach every server that was attached."""
        attached, self._attached = self._attached, []
        for key in attached:
            await self._detach(self._servers[key], self._callers[key])

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the servers in this process."""
        return tuple(self._servers)

    async def add(self, server: ToolServer, caller: Caller) -> None:
        """Add a server under `caller.server`. Raises `McpNotReady`; then it is not added."""
        try:
            await server.attach(caller)
        except BaseException:
            await self._detach(server, caller)
            raise
        self._servers[caller.server], self._callers[caller.server] = server, caller
        self._attached.append(caller.server)

    async def remove(self, key: str) -> None:
        """Remove and detach a server."""
        server, caller = self._servers.pop(key), self._callers.pop(key)
        if key in self._attached:
            self._attached.remove(key)
            await self._detach(server, caller)

    async def _detach(self, server: ToolServer, caller: Caller) -> None:
        try:
            async with asyncio.timeout(DETACHING):
                await server.detach(caller)
        except Exception as error:  # noqa: BLE001 - the caller's server; the others must be detached too
            self._report(f"tool server {caller.server!r}", error)

    def name_session(self, session_id: str) -> None:
        """Set the session id that the servers see; the CLI reports it, and may change it."""
        for caller in self._callers.values():
            caller.session_id = session_id

    async def answer(self, asked: ToolCalled) -> JsonObject:
        """Return the server's answer, or a JSON-RPC error."""
        request_id = asked.message.get("id")
        server = self._servers.get(asked.server)
        if server is None:
            return jsonrpc_error(
                request_id,
                INTERNAL_ERROR,
                f"there is no MCP server named {asked.server!r} in this process",
            )
        try:
            reply = await server.handle(asked.message, self._callers[asked.server])
        except Exception as error:  # noqa: BLE001 - the caller's server; the CLI needs an answer
            self._report(f"tool server {asked.server!r}", error)
            return jsonrpc_error(
                request_id, INTERNAL_ERROR, f"the MCP server failed: {type(error).__name__}"
            )
        # Notifications must be answered too, or the CLI waits until its timeout.
        return reply if reply is not None else {"jsonrpc": "2.0", "result": {}}
