"""From the configuration of an MCP server to an initialized connection.

`RemoteConnection` is one connection, `SharedConnection` keeps one for many sessions. The
configurations are the CLI's own: a command to run, or a URL.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO
from urllib.parse import urlsplit

from steersman._json import is_object, loads
from steersman.errors import Described, McpNotReady, UsageError
from steersman.journal.redaction import Redactor, secrets_in
from steersman.options import checks
from steersman.ports import JsonObject
from steersman.tools._mcp.jsonrpc import error_message, jsonrpc_request, notification
from steersman.tools._mcp.package import (
    HttpRequest,
    HttpResponse,
    Streams,
    open_http,
    open_sse,
)
from steersman.tools._mcp.peer import (
    CAPABILITIES,
    ConnectionLost,
    McpConnection,
    OnNotification,
    OnRequest,
    reason_of,
)
from steersman.tools._mcp.stdio import open_stdio

PROTOCOL_VERSION = "2025-11-25"
CLIENT = {"name": "steersman", "version": "1"}
MOST_PAGES = 1000
"""Pages of `tools/list` that are read, so that a server with endless pages ends the wait."""
STDERR_KEPT = 2000
REQUEST_IDS = itertools.count(1)
"""Ids are never used twice, so that a late response is not taken for that to a newer request."""
SESSION_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
"""Responses to an unknown session id: the protocol requires 404, `mcp` before 1.26 sends 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLimits:
    """Limits of a `RemoteTools`: timeouts in seconds, and a size in bytes."""

    connect: float = 30.0
    """How long connecting, `initialize` and listing the tools may take together."""
    retry_pause: float = 5.0
    """How long calls fail at once after a failed connection attempt, before the next attempt."""
    ping_every: float = 15.0
    """How often an HTTP server that has not answered a request is pinged.

    A server that was restarted in the meantime refuses the ping, and the request fails.
    """
    call: float = 3600.0
    """How long a request of a session may take; then it is cancelled, and ends as an error."""
    result: int = 10_000_000
    """How many bytes a response may have, as JSON. For a longer one the model gets an error."""

    def __post_init__(self) -> None:
        checks.positive("limits.connect", self.connect)
        checks.not_negative("limits.retry_pause", self.retry_pause)
        checks.positive("limits.ping_every", self.ping_every)
        checks.positive("limits.call", self.call)
        checks.count("limits.result", self.result)


class NotProcessed(ConnectionLost):
    """The server no longer knows this session and refused the request without processing it."""


class RemoteConnection:
    """An initialized connection: the server's `initialize` result and its tools."""

    def __init__(
        self,
        config: JsonObject,
        on_notification: OnNotification,
        on_request: OnRequest,
        limits: RemoteLimits,
    ) -> None:
        self._diagnostics = _Diagnostics()
        # A process or an SSE stream that ends is noticed without pings.
        self._needs_pings = config.get("type") == "http"
        self.peer = McpConnection(
            lambda: _open_streams(config, self._diagnostics, limits.result),
            on_notification,
            on_request,
            may_be_noise=config.get("type", "stdio") == "stdio",
        )
        self.initialize_result: JsonObject = {}
        self.tools: list[JsonObject] = []

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent, in the session that the server still knows."""
        return self.peer.is_open and not self._diagnostics.is_session_lost

    async def request(self, request: JsonObject) -> JsonObject:
        """Send a request and return the response.

        Raises `ConnectionLost`, or `NotProcessed` if the server did not process the request.
        """
        request_id = request["id"]
        try:
            response = await self.peer.request(request)
        except ConnectionLost as lost:
            if request_id in self._diagnostics.refused_ids:
                raise NotProcessed(str(lost)) from None
            raise
        reason = error_message(response)
        if request_id in self._diagnostics.refused_ids and "session" in reason.lower():
            self._diagnostics.is_session_lost = True
            raise NotProcessed(reason)
        return response

    def next_id(self) -> int:
        """Return the id for the next request."""
        return next(REQUEST_IDS)

    async def initialize(self) -> None:
        """Perform the handshake and list the tools. Raises `ConnectionLost` or `ValueError`."""
        await self.peer.opened()
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": CAPABILITIES,
            "clientInfo": CLIENT,
        }
        self.initialize_result = await self.result_of("initialize", params)
        self.peer.version = str(self.initialize_result.get("protocolVersion", ""))
        await self.peer.send(notification("notifications/initialized"))
        self._diagnostics.is_initialized = True
        self.tools = await self.list_tools()

    async def aclose(self) -> None:
        """Close the connection."""
        await self.peer.aclose()

    def start_pings(self, every: float) -> None:
        """Ping the server every `every` seconds while a request has no response, over HTTP."""
        if self._needs_pings:
            self.peer.run_in_background(self._ping(every))

    async def _ping(self, every: float) -> None:
        # Over HTTP, 1.x of `mcp` does not report that the response to a request was cut off.
        while True:
            await asyncio.sleep(every)
            if not self.peer.is_waiting:
                continue
            # A busy server does not answer. One that exited fails, and that ends the connection.
            with suppress(TimeoutError, ValueError, ConnectionLost):
                async with asyncio.timeout(every):
                    await self.result_of("ping", {})
            if self._diagnostics.is_session_lost:
                self.peer.abandon("the server was restarted")

    async def list_tools(self) -> list[JsonObject]:
        """Return all tools of the server, page by page."""
        capabilities = self.initialize_result.get("capabilities")
        if not (is_object(capabilities) and "tools" in capabilities):
            return []
        found: list[JsonObject] = []
        params: JsonObject = {}
        for _ in range(MOST_PAGES):
            page = await self.result_of("tools/list", params)
            found += [each for each in page.get("tools", ()) if is_object(each)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
            params = {"cursor": cursor}
        return found

    async def result_of(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and return its result. Raises `ConnectionLost` or `ValueError`."""
        response = await self.peer.request(jsonrpc_request(self.next_id(), method, params))
        result = response.get("result")
        if not is_object(result):
            raise ValueError(error_message(response) or "no result")
        return result

    def explain(self, error: BaseException) -> tuple[str, str]:
        """Return the MCP status and the reason of a failure, with stderr and HTTP status."""
        return self._diagnostics.status, self._diagnostics.explain(error)


async def connect(
    name: str,
    config: JsonObject,
    on_notification: OnNotification,
    on_request: OnRequest,
    limits: RemoteLimits,
) -> RemoteConnection:
    """Connect and initialize. Raises `McpNotReady` after everything was closed again."""
    timeout = limits.connect
    remote = RemoteConnection(config, on_notification, on_request, limits)
    try:
        async with asyncio.timeout(timeout):
            await remote.initialize()
    except (ConnectionLost, ValueError, TimeoutError) as error:
        await remote.peer.aclose()
        slow = f"it did not answer within {timeout:g} s"
        if remote.peer.unreadable:
            slow += f"; it sent what cannot be read: {remote.peer.unreadable}"
        cause = ConnectionLost(slow) if isinstance(error, TimeoutError) else error
        status, reason = remote.explain(cause)
        raise McpNotReady(name, status, Redactor(secrets_of(config)).shown(reason)) from None
    except BaseException:
        remote.peer.abandon()
        raise
    remote.start_pings(limits.ping_every)
    return remote


class SharedConnection:
    """One connection shared by all sessions.

    After a failed attempt, calls fail at once for `pause` seconds instead of reconnecting.
    """

    def __init__(
        self, open_remote: Callable[[str], Awaitable[RemoteConnection]], pause: float
    ) -> None:
        self._open_remote = open_remote
        self._pause = pause
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting = asyncio.Lock()
        self._remote: RemoteConnection | None = None
        self._failure: tuple[float, McpNotReady] | None = None

    @property
    def remote(self) -> RemoteConnection | None:
        """The connection, if it is open."""
        return self._remote if self._remote is not None and self._remote.is_open else None

    def join(self) -> None:
        """Count one more user. Raises `UsageError` if the users are in another event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._users:
                raise UsageError(
                    "RemoteTools",
                    Described("one that is in use elsewhere"),
                    "one event loop at a time",
                )
            self._loop, self._connecting, self._remote = loop, asyncio.Lock(), None
        self._users += 1

    async def leave(self) -> None:
        """Count one user less; the last one closes the connection."""
        self._users -= 1
        if self._users:
            return
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.aclose()

    async def require(self, name: str) -> RemoteConnection:
        """Return the connection, after connecting if there is none. Raises `McpNotReady`."""
        if self.remote is not None:
            return self.remote
        async with self._connecting:
            return self.remote or await self._reconnect(name)

    async def require_unless_just_failed(self, name: str) -> RemoteConnection:
        """Return the connection, or raise `McpNotReady` at once after a recent failure."""
        if self.remote is None and self._failure is not None:
            failed_at, failure = self._failure
            if asyncio.get_running_loop().time() < failed_at + self._pause:
                raise McpNotReady(name, failure.status, failure.error)
        return await self.require(name)

    async def _reconnect(self, name: str) -> RemoteConnection:
        lost, self._remote = self._remote, None
        if lost is not None:
            await lost.aclose()
        try:
            self._remote = await self._open_remote(name)
        except McpNotReady as failure:
            self._failure = (asyncio.get_running_loop().time(), failure)
            raise
        self._failure = None
        return self._remote


def secrets_of(config: JsonObject) -> Iterator[str]:
    """Yield the parts of a configuration that must not be shown or logged."""
    yield from secrets_in({}, config)
    address = config.get("url")
    if isinstance(address, str):
        parts = urlsplit(address)
        yield from filter(None, (parts.query, parts.username, parts.password))


class _Diagnostics:
    """Facts about a server beside its responses: stderr, and the status of HTTP responses."""

    def __init__(self) -> None:
        self.stderr = b""
        self.http_error: int | None = None
        """The last HTTP status that was an error."""
        self.is_initialized = False
        self.is_session_lost = False
        """Whether the server refused our session id, because it was restarted."""
        self.refused_ids: set[object] = set()
        """Ids of requests that the server refused for their session id, and did not process."""

    @property
    def status(self) -> str:
        needs_login = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        return "needs-auth" if self.http_error in needs_login else "failed"

    def explain(self, error: BaseException) -> str:
        reason = str(error) or reason_of(error)
        if self.http_error is not None and str(self.http_error) not in reason:
            reason += f" (HTTP {self.http_error})"
        stderr = " ".join(self.stderr.decode("utf-8", "replace").split())
        return f"{reason}; it wrote on stderr: {stderr}" if stderr else reason

    async def on_response(self, response: HttpResponse) -> None:
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return
        if self.is_initialized and response.status_code in SESSION_REFUSED:
            self.refused_ids.add(_request_id(response.request))
            is_unknown = response.status_code == HTTPStatus.NOT_FOUND
            self.is_session_lost = self.is_session_lost or is_unknown
        # Servers may refuse the GET for their notifications and the DELETE at the end.
        if response.request.method == "POST" or not self.is_initialized:
            self.http_error = response.status_code


def _request_id(request: HttpRequest) -> object:
    try:
        sent = loads(request.content)
    except (ValueError, RuntimeError):
        return None
    return sent.get("id") if is_object(sent) else None


def _open_streams(
    config: JsonObject, diagnostics: _Diagnostics, longest: int
) -> AbstractAsyncContextManager[Streams]:
    kind = config.get("type", "stdio")
    if kind == "stdio":
        return _open_process(config, diagnostics, longest)
    return (open_http if kind == "http" else open_sse)(config, diagnostics.on_response)


@asynccontextmanager
async def _open_process(
    config: JsonObject, diagnostics: _Diagnostics, longest: int
) -> AsyncGenerator[Streams]:
    async with _keep_stderr(diagnostics) as stderr, open_stdio(config, stderr, longest) as streams:
        yield streams


@asynccontextmanager
async def _keep_stderr(diagnostics: _Diagnostics) -> AsyncGenerator[IO[str]]:
    """Open a file for the server's stderr; the end of what is written is kept in memory."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stderr:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _StderrTail(diagnostics), os.fdopen(reading, "rb", 0)
        )
        try:
            yield stderr
        finally:
            transport.close()


class _StderrTail(asyncio.Protocol):
    def __init__(self, diagnostics: _Diagnostics) -> None:
        self._diagnostics = diagnostics

    def data_received(self, data: bytes) -> None:
        self._diagnostics.stderr = (self._diagnostics.stderr + data)[-STDERR_KEPT:]
