"""From a configuration to a connection that has been greeted, or to `McpNotReady`.

Configurations are the CLI's own: a command to run, or an address to connect.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import urlsplit

from steersman import _json
from steersman.errors import McpNotReady, UsageError
from steersman.journal.redaction import Redactor, secrets_in
from steersman.options import checks
from steersman.ports import JsonObject
from steersman.tools._mcp.package import Streams, dial_http, dial_sse, spawn
from steersman.tools._mcp.peer import (
    Asked,
    ConnectionLost,
    Heard,
    McpConnection,
    notification,
    reason_of,
)
from steersman.tools._mcp.server_requests import CAPABILITIES

__all__ = [
    "NotProcessed",
    "RemoteConnection",
    "RemoteLimits",
    "SharedConnection",
    "connect",
    "secrets_of",
]

PROTOCOL_VERSION = "2025-11-25"
CLIENT = {"name": "steersman", "version": "1"}
MOST_PAGES = 1000
"""So that a server that never says it is the last page holds nobody forever."""
STDERR_KEPT = 2000
NUMBERS = itertools.count(1)
"""Never the same one twice, so that nothing late is taken for the answer to something new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLimits:
    """How patient a `RemoteTools` is, in seconds."""

    connect: float = 30.0
    """How long it may take to connect, to greet and to list the tools."""
    retry_pause: float = 5.0
    """How long calls fail at once after it could not be reached, before it is dialled again."""
    ping_every: float = 15.0
    """How often a server behind HTTP that owes an answer is asked whether it is still the same."""

    def __post_init__(self) -> None:
        checks.positive("limits.connect", self.connect)
        checks.not_negative("limits.retry_pause", self.retry_pause)
        checks.positive("limits.ping_every", self.ping_every)


class NotProcessed(ConnectionLost):
    """The server does not know us any more, and has not begun what it was asked."""


class RemoteConnection:
    """A connection that has been greeted: what the server says of itself, and its tools."""

    def __init__(self, config: JsonObject, heard: Heard, asked: Asked) -> None:
        self._signs = _Diagnostics()
        # The others tell by themselves when they are gone.
        self._may_vanish = config.get("type") == "http"
        self.peer = McpConnection(lambda: _connection(config, self._signs), heard, asked)
        self.hello: JsonObject = {}
        self.tools: list[JsonObject] = []

    @property
    def is_open(self) -> bool:
        """Whether it can still be spoken to, and still knows us."""
        return self.peer.is_open and not self._signs.has_forgotten_us

    async def ask(self, request: JsonObject) -> JsonObject:
        """The answer to a request. Raises `ConnectionLost`, or `NotProcessed` if nothing was run."""
        number = request["id"]
        try:
            answer = await self.peer.ask(request)
        except ConnectionLost as lost:
            if number in self._signs.turned_away:
                raise NotProcessed(str(lost)) from None
            raise
        if number in self._signs.turned_away and "session" in _complaint(answer).lower():
            self._signs.has_forgotten_us = True
            raise NotProcessed(_complaint(answer))
        return answer

    def next_number(self) -> int:
        """The id of the next request."""
        return next(NUMBERS)

    async def greet(self) -> None:
        """Say hello and learn the tools. Raises `ConnectionLost` or `ValueError`."""
        await self.peer.opened()
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": CAPABILITIES,
            "clientInfo": CLIENT,
        }
        self.hello = await self.result_of("initialize", params)
        self.peer.version = str(self.hello.get("protocolVersion", ""))
        await self.peer.tell(notification("notifications/initialized"))
        self._signs.is_known = True
        self.tools = await self.list_tools()

    async def aclose(self) -> None:
        """End the connection."""
        await self.peer.aclose()

    def watch(self, every: float) -> None:
        """See, every so many seconds, that a server which owes us an answer is still there."""
        if self._may_vanish:
            self.peer.run(self._feel_pulse(every))

    async def _feel_pulse(self, every: float) -> None:
        # Over HTTP, 1.x of `mcp` does not tell when the answer to a request is cut off.
        while True:
            await asyncio.sleep(every)
            if not self.peer.is_waiting:
                continue
            # A server that is busy does not answer; one that is gone fails, and ends the line.
            with suppress(TimeoutError, ValueError, ConnectionLost):
                async with asyncio.timeout(every):
                    await self.result_of("ping", {})
            if self._signs.has_forgotten_us:
                self.peer.abandon("the server was started anew")

    async def list_tools(self) -> list[JsonObject]:
        """All its tools, page by page."""
        offers = self.hello.get("capabilities")
        if not (_json.is_object(offers) and "tools" in offers):
            return []
        found: list[JsonObject] = []
        params: JsonObject = {}
        for _ in range(MOST_PAGES):
            page = await self.result_of("tools/list", params)
            found += [each for each in page.get("tools", ()) if _json.is_object(each)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
            params = {"cursor": cursor}
        return found

    async def result_of(self, method: str, params: JsonObject) -> JsonObject:
        """The result of a request of our own. Raises `ConnectionLost` or `ValueError`."""
        request = {"jsonrpc": "2.0", "id": self.next_number(), "method": method, "params": params}
        answer = await self.peer.ask(request)
        result = answer.get("result")
        if not _json.is_object(result):
            raise ValueError(_complaint(answer) or "no result")
        return result

    def why(self, error: BaseException) -> tuple[str, str]:
        """The status and the reason of a failure, with what else we saw of the server."""
        return self._signs.status, self._signs.explain(error)


async def connect(
    name: str, config: JsonObject, heard: Heard, asked: Asked, limits: RemoteLimits
) -> RemoteConnection:
    """Connect and greet. Raises `McpNotReady`; then nothing is left behind."""
    timeout = limits.connect
    remote = RemoteConnection(config, heard, asked)
    try:
        async with asyncio.timeout(timeout):
            await remote.greet()
    except (ConnectionLost, ValueError, TimeoutError) as error:
        await remote.peer.aclose()
        slow = f"it did not answer within {timeout:g} s"
        cause = ConnectionLost(slow) if isinstance(error, TimeoutError) else error
        status, reason = remote.why(cause)
        raise McpNotReady(name, status, Redactor(secrets_of(config)).text(reason)) from None
    except BaseException:
        remote.peer.abandon()
        raise
    remote.watch(limits.ping_every)
    return remote


def secrets_of(config: JsonObject) -> Iterator[str]:
    """What must not be shown of a configuration."""
    yield from secrets_in({}, config)
    address = config.get("url")
    if isinstance(address, str):
        parts = urlsplit(address)
        yield from filter(None, (parts.query, parts.username, parts.password))


class _Diagnostics:
    """What can be seen of a server beside its answers: stderr, and what HTTP says."""

    def __init__(self) -> None:
        self.stderr = b""
        self.refused: int | None = None
        """The last HTTP status that was an error."""
        self.is_known = False
        self.has_forgotten_us = False
        """Whether it does not know our session any more: it was started anew."""
        self.turned_away: set[Any] = set()
        """The ids of requests that it refused as such, and has not begun."""

    @property
    def status(self) -> str:
        needs_login = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        return "needs-auth" if self.refused in needs_login else "failed"

    def explain(self, error: BaseException) -> str:
        reason = str(error) or reason_of(error)
        if self.refused is not None and str(self.refused) not in reason:
            reason += f" (HTTP {self.refused})"
        said = " ".join(self.stderr.decode("utf-8", "replace").split())
        return f"{reason}; it wrote on stderr: {said}" if said else reason

    async def watch(self, response: Any) -> None:
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return
        if self.is_known and response.status_code in _TURNED_AWAY:
            self.turned_away.add(_id_in(response.request))
            is_gone = response.status_code == HTTPStatus.NOT_FOUND
            self.has_forgotten_us = self.has_forgotten_us or is_gone
        # Servers may refuse the stream of their own news, or the goodbye; that is no failure.
        if response.request.method == "POST" or not self.is_known:
            self.refused = response.status_code


# Servers of `mcp` before 1.26 say 400 where the protocol says 404.
_TURNED_AWAY = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)


def _id_in(request: Any) -> Any:
    try:
        sent = _json.loads(request.content)
    except (ValueError, RuntimeError):
        return None
    return sent.get("id") if _json.is_object(sent) else None


def _complaint(answer: JsonObject) -> str:
    error = answer.get("error")
    return str(error.get("message", "")) if _json.is_object(error) else ""


def _connection(config: JsonObject, signs: _Diagnostics) -> AbstractAsyncContextManager[Streams]:
    kind = config.get("type", "stdio")
    if kind == "stdio":
        return _process(config, signs)
    return (dial_http if kind == "http" else dial_sse)(config, signs.watch)


@asynccontextmanager
async def _process(config: JsonObject, signs: _Diagnostics) -> AsyncGenerator[Streams]:
    async with _kept_stderr(signs) as stderr, spawn(config, stderr) as streams:
        yield streams


@asynccontextmanager
async def _kept_stderr(signs: _Diagnostics) -> AsyncGenerator[IO[str]]:
    """A file to write to, of which the end is kept in memory."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stderr:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Tail(signs), os.fdopen(reading, "rb", 0)
        )
        try:
            yield stderr
        finally:
            transport.close()


class _Tail(asyncio.Protocol):
    def __init__(self, signs: _Diagnostics) -> None:
        self._signs = signs

    def data_received(self, data: bytes) -> None:
        self._signs.stderr = (self._signs.stderr + data)[-STDERR_KEPT:]


class SharedConnection:
    """Keeps what `connect` gives; `pause` is the time after a failure in which calls do not connect."""

    def __init__(self, connect: Callable[[str], Awaitable[RemoteConnection]], pause: float) -> None:
        self._dial = connect
        self._pause = pause
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dialling = asyncio.Lock()
        self._remote: RemoteConnection | None = None
        self._failure: tuple[float, McpNotReady] | None = None

    @property
    def remote(self) -> RemoteConnection | None:
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

    async def now(self, name: str) -> RemoteConnection:
        """The connection, dialled if there is none. Raises `McpNotReady`."""
        if self.remote is not None:
            return self.remote
        async with self._dialling:
            return self.remote or await self._dial_again(name)

    async def unless_just_failed(self, name: str) -> RemoteConnection:
        """The same, but fails at once while the last failure is fresh."""
        if self.remote is None and self._failure is not None:
            failed_at, failure = self._failure
            if asyncio.get_running_loop().time() < failed_at + self._pause:
                raise McpNotReady(name, failure.status, failure.error)
        return await self.now(name)

    async def _dial_again(self, name: str) -> RemoteConnection:
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
