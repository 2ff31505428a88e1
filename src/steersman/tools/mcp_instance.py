"""A server made with the `mcp` package, served to sessions from inside this process.

Every session has a connection of its own, over the package's in-memory streams. Messages pass as
they are, ids included; what the server says by itself goes to the CLI, what it asks, to us.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from steersman import _json
from steersman.errors import McpNotReady, UsageError
from steersman.options.servers import lowlevel_server
from steersman.ports import Caller, JsonObject, ToolServer
from steersman.tools._mcp.package import Streams, memory_streams, run_server
from steersman.tools._mcp.peer import INTERNAL_ERROR, ConnectionLost, McpConnection, rpc_error
from steersman.tools._mcp.server_requests import CAPABILITIES, answer_server

__all__ = ["McpInstance", "as_tool_server"]

BEGINNING = 30.0
"""Seconds that a server's lifespan may take to begin."""
ENDING = 2.0
"""Seconds that a server may take to end by itself, once its connection is closed."""

INVALID_REQUEST = -32600

logger = logging.getLogger("steersman.tools")


def as_tool_server(given: Any) -> ToolServer:
    """`given`, wrapped if it is a `Server`, `FastMCP` or `MCPServer` of the `mcp` package."""
    return McpInstance(given) if lowlevel_server(given) is not None else given


class McpInstance:
    """An `mcp` server as a `ToolServer`. `mcp_servers={"key": server}` makes one of these for you.

    A server's lifespan begins anew for every session that it serves.
    """

    def __init__(self, server: Any) -> None:
        self._server = lowlevel_server(server)
        if self._server is None:
            raise UsageError(
                "server", f"a {type(server).__name__}", "a Server, FastMCP or MCPServer of mcp"
            )
        self._peers: dict[Caller, McpConnection] = {}
        self._ungreeted: set[McpConnection] = set()

    def __repr__(self) -> str:
        return f"McpInstance({getattr(self._server, 'name', '')!r})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        # Servers tell their tools only over a connection.
        return ()

    async def attach(self, caller: Caller) -> None:
        """Begin a connection, and see that the server's lifespan has begun with it."""
        peer = self._peers[caller] = self._connect(caller)
        self._ungreeted.add(peer)
        try:
            async with asyncio.timeout(BEGINNING):
                await peer.opened()
                await peer.ask({"jsonrpc": "2.0", "id": "steersman", "method": "ping"})
        except ConnectionLost as lost:
            raise McpNotReady(caller.server, "failed", str(lost)) from None
        except TimeoutError:
            slow = f"it did not begin within {BEGINNING:g} s"
            raise McpNotReady(caller.server, "pending", slow) from None

    async def detach(self, caller: Caller) -> None:
        peer = self._peers.pop(caller, None)
        if peer is not None:
            self._ungreeted.discard(peer)
            await peer.aclose()

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        number, method = message.get("id"), message.get("method")
        if method is None:
            return None
        try:
            if method == "initialize":
                return await self._greet(message, caller)
            return await self._pass(message, caller)
        except ConnectionLost as lost:
            logger.warning("%r failed at %r: %s", self, method, lost)
            return None if number is None else rpc_error(number, INTERNAL_ERROR, f"{lost}")
        except ValueError:
            # Told without the value, which may be long and private.
            return None if number is None else rpc_error(number, INVALID_REQUEST, "no JSON-RPC")

    async def _greet(self, message: JsonObject, caller: Caller) -> JsonObject:
        """Greet the server. A CLI that does so again has forgotten the last connection."""
        peer = self._peers.get(caller)
        if peer is None or peer not in self._ungreeted or not peer.is_open:
            await self.detach(caller)
            peer = self._peers[caller] = self._connect(caller)
            await peer.opened()
        self._ungreeted.discard(peer)
        return await peer.ask(_offering(message))

    def _connect(self, caller: Caller) -> McpConnection:
        return McpConnection(
            lambda: _connection(self._server), caller.notify, lambda ask: answer_server(ask, caller)
        )

    async def _pass(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        peer = self._peers.get(caller)
        if peer is None:
            raise ConnectionLost("the server was not greeted")
        if "id" in message:
            return await peer.ask(message)
        if message["method"] == "notifications/cancelled":
            params = message.get("params")
            if _json.is_object(params) and isinstance(params.get("requestId"), int | str):
                peer.take_back(params["requestId"], str(params.get("reason", "")))
            return None
        await peer.tell(message)
        return None


def _offering(initialize: JsonObject) -> JsonObject:
    """The CLI's greeting, with what we offer in its place."""
    params = initialize.get("params")
    if not _json.is_object(params):
        return initialize
    offered = params.get("capabilities")
    both = {**(offered if _json.is_object(offered) else {}), **CAPABILITIES}
    return {**initialize, "params": {**params, "capabilities": both}}


@asynccontextmanager
async def _connection(server: Any) -> AsyncGenerator[Streams]:
    """The client's end of a connection to `server`, which runs as long as it is held."""
    async with memory_streams() as (ours, its):
        running = asyncio.create_task(_run(server, its), name="steersman mcp server")
        try:
            yield ours
        finally:
            await ours[1].aclose()
            await asyncio.wait([running], timeout=ENDING)
            running.cancel()
            await asyncio.wait([running], timeout=ENDING)
            error = running.exception() if running.done() and not running.cancelled() else None
        if error is not None:
            # This is why the connection ended.
            raise error


async def _run(server: Any, streams: Streams) -> None:
    try:
        await run_server(server, streams)
    finally:
        # The reader on the other end learns that nobody will answer.
        await streams[1].aclose()
