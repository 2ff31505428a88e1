"""A server made with the `mcp` package, served to sessions from inside this process.

Every session has a connection of its own, over the package's in-memory streams. Messages of the
CLI are forwarded unchanged, ids included. Notifications of the server go to the CLI; requests of
the server are answered here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from steersman._json import is_object
from steersman.errors import Described, McpNotReady, UsageError
from steersman.options.servers import lowlevel_server
from steersman.ports import Caller, JsonObject, ToolServer
from steersman.tools._mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    jsonrpc_error,
    jsonrpc_request,
)
from steersman.tools._mcp.package import LowLevelServer, Streams, memory_streams, run_server
from steersman.tools._mcp.peer import CAPABILITIES, ConnectionLost, McpConnection, answer_server

START_TIMEOUT = 30.0
"""Seconds that a server's lifespan may take to start."""
EXIT_TIMEOUT = 2.0
"""Seconds that a server may take to return after its connection was closed."""

logger = logging.getLogger("steersman.tools")


def as_tool_server(given: object, *, is_required: bool = True) -> ToolServer:
    """Return `given`, wrapped if it is a server of the `mcp` package; see `McpInstance`."""
    is_instance = lowlevel_server(given) is not None
    if is_instance:
        return McpInstance(given, is_required=is_required)
    return cast("ToolServer", given)


class McpInstance:
    """An `mcp` server as a `ToolServer`. `mcp_servers={"key": server}` makes one of these for you.

    The server's lifespan starts once for every session that it serves. If it does not start, the
    session does not either; with `is_required=False` the session starts without it, and its status
    is `failed`.
    """

    def __init__(self, server: object, *, is_required: bool = True) -> None:
        found: LowLevelServer | None = lowlevel_server(server)
        if found is None:
            raise UsageError(
                "server", Described.kind_of(server), "a Server, FastMCP or MCPServer of mcp"
            )
        self._server = found
        self._is_required = is_required
        self._connections: dict[Caller, McpConnection] = {}
        self._uninitialized: set[McpConnection] = set()

    def __repr__(self) -> str:
        return f"McpInstance({getattr(self._server, 'name', '')!r})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        # Servers list their tools only over a connection.
        return ()

    async def attach(self, caller: Caller) -> None:
        try:
            await self._start(caller)
        except McpNotReady as failed:
            if self._is_required:
                raise
            logger.warning("%s", failed)

    async def _start(self, caller: Caller) -> None:
        """Open a connection, and check by a ping that the server's lifespan has started."""
        connection = self._connections[caller] = self._connect(caller)
        self._uninitialized.add(connection)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await connection.opened()
                await connection.request(jsonrpc_request("steersman", "ping"))
        except ConnectionLost as lost:
            raise McpNotReady(caller.server, "failed", str(lost)) from None
        except TimeoutError:
            slow = f"it did not start within {START_TIMEOUT:g} s"
            raise McpNotReady(caller.server, "pending", slow) from None

    async def detach(self, caller: Caller) -> None:
        connection = self._connections.pop(caller, None)
        if connection is not None:
            self._uninitialized.discard(connection)
            await connection.aclose()

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        request_id, method = message.get("id"), message.get("method")
        if method is None:
            return None
        try:
            if method == "initialize":
                return await self._initialize(message, caller)
            return await self._forward(message, caller)
        except ConnectionLost as lost:
            logger.warning("%r failed at %r: %s", self, method, lost)
            return _error(request_id, INTERNAL_ERROR, f"{lost}")
        except ValueError:
            # The text of the error holds the message, which may be long and private.
            return _error(request_id, INVALID_REQUEST, "no JSON-RPC")

    async def _initialize(self, message: JsonObject, caller: Caller) -> JsonObject:
        """Forward `initialize`. If it comes again, the CLI was restarted: open a new connection."""
        connection = self._connections.get(caller)
        if connection is None or connection not in self._uninitialized or not connection.is_open:
            await self.detach(caller)
            connection = self._connections[caller] = self._connect(caller)
            await connection.opened()
        self._uninitialized.discard(connection)
        return await connection.request(_with_capabilities(message))

    def _connect(self, caller: Caller) -> McpConnection:
        return McpConnection(
            lambda: _connection(self._server),
            caller.notify,
            lambda request: answer_server(request, caller),
        )

    async def _forward(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        connection = self._connections.get(caller)
        if connection is None:
            raise ConnectionLost("the server was not initialized")
        if "id" in message:
            return await connection.request(message)
        if message["method"] == "notifications/cancelled":
            params = message.get("params")
            if is_object(params) and isinstance(params.get("requestId"), int | str):
                connection.cancel_request(params["requestId"], str(params.get("reason", "")))
            return None
        await connection.send(message)
        return None


def _error(request_id: object, code: int, message: str) -> JsonObject | None:
    return None if request_id is None else jsonrpc_error(request_id, code, message)


def _with_capabilities(initialize: JsonObject) -> JsonObject:
    """Return the CLI's `initialize` with the capabilities that are answered here added."""
    params = initialize.get("params")
    if not is_object(params):
        return initialize
    offered = params.get("capabilities")
    both = {**(offered if is_object(offered) else {}), **CAPABILITIES}
    return {**initialize, "params": {**params, "capabilities": both}}


@asynccontextmanager
async def _connection(server: LowLevelServer) -> AsyncGenerator[Streams]:
    """Run `server` and yield the client's end of a connection to it."""
    async with memory_streams() as (client_end, server_end):
        running = asyncio.Task(_run(server, server_end), name="steersman mcp server")
        try:
            yield client_end
        finally:
            await client_end[1].aclose()
            await asyncio.wait([running], timeout=EXIT_TIMEOUT)
            running.cancel()
            await asyncio.wait([running], timeout=EXIT_TIMEOUT)
            error = running.exception() if running.done() and not running.cancelled() else None
        if error is not None:
            # The error is the reason why the connection ended.
            raise error


async def _run(server: LowLevelServer, streams: Streams) -> None:
    try:
        await run_server(server, streams)
    finally:
        # Ends the loop of the reader on the client's end.
        await streams[1].aclose()
