"""The client's end of one MCP connection.

Matches responses to requests and passes on what the server sends by itself: its requests for an
elicitation go to the user through `Caller.elicit`. A session has neither a model nor folders for a
server, so sampling and roots are refused, as by a client that never offered them. Messages are
plain JSON-RPC mappings; the streams are those of the `mcp` package. The connection runs in a task
of its own, so that cancel scopes inside that package never reach the tasks of callers.

`mcp.ClientSession` does not serve instead: results pass through its models, so they are not
forwarded as they came; it has no place for the CLI's request ids, which `mcp_instance` forwards;
and it differs between the two majors.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import cast

from steersman._json import JsonDict, is_object
from steersman.permissions import Elicitation, ElicitationAnswer
from steersman.ports import Caller, JsonObject
from steersman.tools._mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RequestId,
    cancellation,
    jsonrpc_error,
    jsonrpc_result,
)
from steersman.tools._mcp.package import Streams, WriteStream, as_message, as_plain, bad_inputs

CLOSE_TIMEOUT = 6.0
"""Seconds that closing may take; the `mcp` package gives a process two of them to exit."""
EXIT_TIMEOUT = 1.0
"""Seconds that a failed write waits for the reading side to report why the connection ended."""
LONGEST_REASON = 500

CAPABILITIES: JsonObject = {"elicitation": {"form": {}, "url": {}}}
"""The capabilities that servers are offered. The CLI itself offers none."""

REFUSED = {
    "sampling/createMessage": "this client samples no model for MCP servers",
    "roots/list": "this client shows no roots to MCP servers",
}

OnNotification = Callable[[JsonObject], None]
OnRequest = Callable[[JsonObject], Awaitable[JsonObject]]
OpenConnection = Callable[[], AbstractAsyncContextManager[Streams]]

logger = logging.getLogger("steersman.tools")


class ConnectionLost(Exception):
    """The server exited or can no longer be reached."""


class McpConnection:
    """One connection. `on_request` returns the response to a request of the server."""

    def __init__(
        self,
        open_connection: OpenConnection,
        on_notification: OnNotification,
        on_request: OnRequest,
        *,
        may_be_noise: bool = True,
    ) -> None:
        """Open the connection.

        With `may_be_noise` the server may also write text that is no message, as to stdout.
        """
        self._may_be_noise = may_be_noise
        self.unreadable = ""
        """Why the last message could not be read; empty after one that could."""
        self._open_connection = open_connection
        self._on_notification = on_notification
        self._on_request = on_request
        self.version = ""
        """The negotiated protocol version; empty before `initialize`."""
        self._write: WriteStream | None = None
        self._waiting: dict[RequestId, asyncio.Future[JsonObject]] = {}
        self._background: dict[asyncio.Task[None], RequestId | None] = {}
        self._lost: str | None = None
        self._close_reason = "the connection was closed"
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.Task(self._run(), name="steersman mcp connection")

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been lost or closed."""
        return self._lost is None

    @property
    def is_waiting(self) -> bool:
        """Whether a request has no response yet."""
        return bool(self._waiting)

    async def opened(self) -> None:
        """Wait until the connection is open. Raises `ConnectionLost`."""
        await asyncio.shield(self._opened)

    async def request(self, request: JsonObject) -> JsonObject:
        """Send a request and return the response. Raises `ConnectionLost`.

        Cancelling the wait sends `notifications/cancelled`.
        """
        request_id = request["id"]
        self._writer()
        waiting: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting
        try:
            await self.send(request)
            return await waiting
        except asyncio.CancelledError:
            if self._waiting.get(request_id) is waiting:
                self.cancel_request(request_id)
            raise
        finally:
            if self._waiting.get(request_id) is waiting:
                del self._waiting[request_id]

    async def send(self, message: JsonObject) -> None:
        """Send any message. Raises `ConnectionLost`, or `ValueError` if it is no JSON-RPC."""
        write = self._writer()
        written = as_message(message, self.version)
        try:
            await write.send(written)
        except Exception as error:  # noqa: BLE001 - the package's streams raise what they like
            # The reading side ends too, and its error may name the cause.
            await asyncio.wait([self._task], timeout=EXIT_TIMEOUT)
            self.abandon(reason_of(error))
            raise ConnectionLost(self._lost or reason_of(error)) from None

    def cancel_request(self, request_id: RequestId, reason: str = "the call was cancelled") -> None:
        """Send `notifications/cancelled` and end the wait for that response with an error."""
        waiting = self._waiting.pop(request_id, None)
        if waiting is None:
            return
        if not waiting.done():
            waiting.set_result(jsonrpc_error(request_id, INTERNAL_ERROR, "cancelled"))
        self.run_in_background(self._send_if_open(cancellation(request_id, reason)))

    def run_in_background(
        self, work: Coroutine[object, object, None], request_id: RequestId | None = None
    ) -> None:
        """Run `work` in a task that is cancelled when the connection ends.

        `request_id` is the server's request that it answers; the server can cancel it.
        """
        task = asyncio.Task(work)
        self._background[task] = request_id
        task.add_done_callback(self._background_ended)

    def abandon(self, why: str = "the connection was closed") -> None:
        """Start closing the connection without waiting for the end."""
        self._close_reason = why
        self._task.cancel()

    async def aclose(self) -> None:
        """Close the connection and wait for its end, for `CLOSE_TIMEOUT` seconds at most."""
        self.abandon()
        await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT)

    # --- The task of the connection

    async def _run(self) -> None:
        reason = ""
        try:
            async with self._open_connection() as (read, self._write):
                self._opened.set_result(None)
                async for message in read:
                    if isinstance(message, Exception):
                        # A bad message, or a stream that is about to end, which stops the loop.
                        self._on_unreadable(message)
                    else:
                        self.unreadable = ""
                        self._dispatch(as_plain(message))
            reason = "the server closed the connection"
        except Exception as error:  # noqa: BLE001 - whatever the package or the server's code raised
            reason = reason_of(error)
        finally:
            self._end(reason or self._close_reason)

    def _on_unreadable(self, error: Exception) -> None:
        """End the wait for the response that `error` is about, if that is certain."""
        self.unreadable = reason_of(error)
        logger.warning("an MCP server sent an unreadable message: %s", self.unreadable)
        request_id = self._unreadable_response(error)
        waiting = None if request_id is None else self._waiting.get(request_id)
        if request_id is not None and waiting is not None and not waiting.done():
            reason = f"the server's answer cannot be read: {self.unreadable}"
            waiting.set_result(jsonrpc_error(request_id, INTERNAL_ERROR, reason))

    def _unreadable_response(self, error: Exception) -> RequestId | None:
        if not isinstance(error, ValueError):
            return None
        inputs = bad_inputs(error)
        for request_id in map(_id_in, inputs):
            if request_id in self._waiting:
                return request_id
        looks_like_message = any(not isinstance(each, str) or each[:1] in "{[" for each in inputs)
        is_response = looks_like_message or not self._may_be_noise
        return next(iter(self._waiting)) if is_response and len(self._waiting) == 1 else None

    def _dispatch(self, message: JsonObject) -> None:
        if "method" not in message:
            waiting = self._waiting.get(message.get("id", ""))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif "id" in message:
            self.run_in_background(self._respond(message), message["id"])
        elif message["method"] == "notifications/cancelled":
            params = message.get("params")
            self._cancel_background(params.get("requestId") if is_object(params) else None)
        else:
            try:
                self._on_notification(message)
            except Exception:
                logger.exception("%r of an MCP server could not be forwarded", message["method"])

    async def _respond(self, request: JsonObject) -> None:
        try:
            response = await self._on_request(request)
        except Exception:
            logger.exception("%r of an MCP server failed", request["method"])
            response = jsonrpc_error(request["id"], INTERNAL_ERROR, "the client failed to answer")
        await self._send_if_open(response)

    def _cancel_background(self, request_id: object) -> None:
        for task, answers in self._background.items():
            if answers is not None and answers == request_id:
                task.cancel()

    async def _send_if_open(self, message: JsonObject) -> None:
        try:
            await self.send(message)
        except ConnectionLost:
            logger.debug("an MCP server disconnected before a message could be sent")

    def _end(self, reason: str) -> None:
        self._lost = reason
        waits: list[asyncio.Future[None] | asyncio.Future[JsonObject]]
        waits = [self._opened, *self._waiting.values()]
        for waiting in waits:
            if not waiting.done():
                waiting.set_exception(ConnectionLost(reason))
                # Retrieve it: asyncio logs exceptions that are never retrieved.
                waiting.exception()
        for task in self._background:
            task.cancel()

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        del self._background[task]
        if not task.cancelled() and task.exception() is not None:
            logger.error("background work for an MCP server failed", exc_info=task.exception())

    def _writer(self) -> WriteStream:
        if self._lost is not None or self._write is None:
            raise ConnectionLost(self._lost or "there is no connection yet")
        return self._write


def _id_in(found: object) -> RequestId | None:
    """Return the id in a message that could not be read; of JSON that is cut off, as text."""
    if is_object(found):
        request_id = found.get("id")
        return request_id if isinstance(request_id, int | str) else None
    match = _ID.search(found) if isinstance(found, str) and found.startswith("{") else None
    return None if match is None else int(match[1])


_ID = re.compile(r'"id"\s*:\s*(\d{1,18})\b')


def reason_of(error: BaseException) -> str:
    """Describe an error in one line; of a group, the first error inside."""
    inside: BaseException = error
    while isinstance(inside, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", inside).exceptions[0]
    kind, text = type(inside).__name__, " ".join(str(inside).split())
    return f"{kind}: {text}"[:LONGEST_REASON] if text else kind


async def answer_server(request: JsonObject, caller: Caller | None) -> JsonObject:
    """Return the response to a server's request; without a caller, elicitations are declined."""
    request_id, method = request["id"], request["method"]
    if method == "ping":
        return jsonrpc_result(request_id, {})
    if method != "elicitation/create":
        reason = REFUSED.get(method, f"method not found: {method}")
        return jsonrpc_error(request_id, METHOD_NOT_FOUND, reason)
    params = request.get("params")
    if not is_object(params):
        return jsonrpc_error(request_id, INVALID_PARAMS, "params: an object is needed")
    answer = ElicitationAnswer("decline")
    if caller is not None and caller.elicit is not None:
        answer = await caller.elicit(_elicitation(params, caller.server))
    return jsonrpc_result(request_id, _encode(answer))


def _elicitation(params: JsonObject, server: str) -> Elicitation:
    requested = params.get("requestedSchema")
    schema = requested if is_object(requested) else None
    fields = schema.get("properties") if schema else None
    return Elicitation(
        mcp_server_name=server,
        message=str(params.get("message", "")),
        mode=str(params.get("mode", "form")),
        requested_schema=schema,
        property_order=list(fields) if is_object(fields) else [],
        url=params.get("url"),
        elicitation_id=params.get("elicitationId"),
    )


def _encode(answer: ElicitationAnswer) -> JsonObject:
    encoded: JsonDict = {"action": answer.action}
    if answer.action == "accept" and answer.content is not None:
        encoded["content"] = dict(answer.content)
    return encoded
