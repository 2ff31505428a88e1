"""The client's end of one MCP connection: who asked what, and what the server wants of us.

Speaks JSON-RPC in plain mappings over the streams of the `mcp` package. The connection lives in a
task of its own, so that the cancel scopes inside that package never reach the tasks of callers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from steersman.ports import JsonObject
from steersman.tools._mcp.package import Streams, as_message, as_plain

__all__ = [
    "ConnectionLost",
    "McpConnection",
    "notification",
    "reason_of",
    "rpc_error",
    "rpc_result",
]

CLOSING = 6.0
"""Seconds that a connection may take to end; a process gets two of them to go by itself."""
NOTICING = 1.0
LONGEST_REASON = 500

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

Heard = Callable[[JsonObject], None]
Asked = Callable[[JsonObject], Awaitable[JsonObject]]
Connect = Callable[[], AbstractAsyncContextManager[Streams]]

logger = logging.getLogger("steersman.tools")


class ConnectionLost(Exception):
    """The server, or the way to it, is gone."""


class McpConnection:
    """One connection. `heard` gets the server's notifications, `asked` answers its requests."""

    def __init__(self, connect: Connect, heard: Heard, asked: Asked) -> None:
        self._connect = connect
        self._heard = heard
        self._asked = asked
        self.version = ""
        """The protocol version that was agreed on, once it was."""
        self._write: Any = None
        self._waiting: dict[int | str, asyncio.Future[JsonObject]] = {}
        self._errands: dict[asyncio.Task[None], Any] = {}
        self._lost: str | None = None
        self._ending = "the connection was closed"
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(), name="steersman mcp connection")

    @property
    def is_open(self) -> bool:
        """Whether the server can still be spoken to."""
        return self._lost is None

    @property
    def is_waiting(self) -> bool:
        """Whether the server owes us an answer."""
        return bool(self._waiting)

    async def opened(self) -> None:
        """Wait until there is a connection. Raises `ConnectionLost`."""
        await asyncio.shield(self._opened)

    async def ask(self, request: JsonObject) -> JsonObject:
        """The server's response to a request. Raises `ConnectionLost`.

        Cancelling the wait tells the server that nobody waits any more.
        """
        number = request["id"]
        self._check()
        waiting: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            await self.tell(request)
            return await waiting
        except asyncio.CancelledError:
            if self._waiting.get(number) is waiting:
                self.take_back(number)
            raise
        finally:
            if self._waiting.get(number) is waiting:
                del self._waiting[number]

    async def tell(self, message: JsonObject) -> None:
        """Send a message that needs no answer.

        Raises `ConnectionLost`, or `ValueError` if it is no JSON-RPC.
        """
        self._check()
        written = as_message(message, self.version)
        try:
            await self._write.send(written)
        except Exception as error:  # noqa: BLE001 - a stream that broke under us, in the package's words
            # The other direction ends too, and may know the reason.
            await asyncio.wait([self._life], timeout=NOTICING)
            self.abandon(reason_of(error))
            raise ConnectionLost(self._lost or reason_of(error)) from None

    def take_back(self, number: int | str, reason: str = "the call was taken back") -> None:
        """Tell the server that nobody waits for that answer, and let go whoever did."""
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        if not waiting.done():
            waiting.set_result(rpc_error(number, INTERNAL_ERROR, "cancelled"))
        params = {"requestId": number, "reason": reason}
        self.run(self._tell_if_open(notification("notifications/cancelled", params)))

    def run(self, errand: Coroutine[Any, Any, None], about: Any = None) -> None:
        """Run something beside the reader, for as long as the connection lives at most."""
        task = asyncio.get_running_loop().create_task(errand)
        self._errands[task] = about
        task.add_done_callback(self._errand_ended)

    def abandon(self, why: str = "the connection was closed") -> None:
        """Begin to close, and do not wait for it."""
        self._ending = why
        self._life.cancel()

    async def aclose(self) -> None:
        """End the connection and everything that ran for it."""
        self.abandon()
        await asyncio.wait([self._life], timeout=CLOSING)

    # What the connection does

    async def _live(self) -> None:
        reason = ""
        try:
            async with self._connect() as (read, self._write):
                self._opened.set_result(None)
                async for message in _messages(read):
                    self._take(message)
            reason = "the server closed the connection"
        except Exception as error:  # noqa: BLE001 - whatever the package or the server's code raised
            reason = reason_of(error)
        finally:
            self._lose(reason or self._ending)

    def _take(self, message: JsonObject) -> None:
        if "method" not in message:
            waiting = self._waiting.get(message.get("id", ""))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif "id" in message:
            self.run(self._answer(message), message["id"])
        elif message["method"] == "notifications/cancelled":
            self._forget_question(message.get("params", {}).get("requestId"))
        else:
            try:
                self._heard(message)
            except Exception:
                logger.exception("%r of a tool server could not be passed on", message["method"])

    async def _answer(self, request: JsonObject) -> None:
        try:
            answer = await self._asked(request)
        except Exception:
            logger.exception("%r of a tool server failed", request["method"])
            answer = rpc_error(request["id"], INTERNAL_ERROR, "the client failed to answer")
        await self._tell_if_open(answer)

    def _forget_question(self, number: Any) -> None:
        for task, about in self._errands.items():
            if about is not None and about == number:
                task.cancel()

    async def _tell_if_open(self, message: JsonObject) -> None:
        try:
            await self.tell(message)
        except ConnectionLost:
            logger.debug("a tool server went away before it could be told something")

    def _lose(self, reason: str) -> None:
        self._lost = reason
        waits: list[asyncio.Future[Any]] = [self._opened, *self._waiting.values()]
        for waiting in waits:
            if not waiting.done():
                waiting.set_exception(ConnectionLost(reason))
                # Looked at, so that asyncio does not report it where nobody waits.
                waiting.exception()
        for task in self._errands:
            task.cancel()

    def _errand_ended(self, task: asyncio.Task[None]) -> None:
        del self._errands[task]
        if not task.cancelled() and task.exception() is not None:
            logger.error("an errand for a tool server failed", exc_info=task.exception())

    def _check(self) -> None:
        if self._lost is not None or self._write is None:
            raise ConnectionLost(self._lost or "there is no connection yet")


async def _messages(read: Any) -> AsyncIterator[JsonObject]:
    async for each in read:
        if isinstance(each, Exception):
            # A line that is no JSON-RPC, or a stream about to end; the end itself is told apart.
            logger.warning("a tool server sent what cannot be read: %s", reason_of(each))
            continue
        yield as_plain(each)


def reason_of(error: BaseException) -> str:
    """What went wrong, in a line: of a group of errors the first one inside."""
    inside: BaseException = error
    while isinstance(inside, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", inside).exceptions[0]
    kind, text = type(inside).__name__, " ".join(str(inside).split())
    return f"{kind}: {text}"[:LONGEST_REASON] if text else kind


def notification(method: str, params: JsonObject | None = None) -> JsonObject:
    """A message that nobody answers."""
    said = {"jsonrpc": "2.0", "method": method}
    return said if params is None else {**said, "params": params}


def rpc_error(number: Any, code: int, message: str) -> JsonObject:
    """A response that says no."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def rpc_result(number: Any, result: JsonObject) -> JsonObject:
    """A response."""
    return {"jsonrpc": "2.0", "id": number, "result": result}
