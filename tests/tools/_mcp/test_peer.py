"""One connection to a server, whose streams are two queues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from steersman.ports import JsonObject
from steersman.testing.faults import VirtualClockLoop
from steersman.tools._mcp.jsonrpc import jsonrpc_request, jsonrpc_result, notification
from steersman.tools._mcp.package import Streams, as_message, as_plain
from steersman.tools._mcp.peer import (
    CLOSE_TIMEOUT,
    LONGEST_REASON,
    ConnectionLost,
    McpConnection,
    reason_of,
)

END = object()


class Server:
    """The other end: what it says is read from a queue, and what it is sent goes into another."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[object] = asyncio.Queue()
        self.sent: asyncio.Queue[JsonObject] = asyncio.Queue()
        self.breaks: Exception | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Streams]:
        yield self._read(), self

    async def _read(self) -> AsyncIterator[object]:
        while (each := await self._said.get()) is not END:
            yield each

    async def send(self, item: object, /) -> None:
        if self.breaks is not None:
            raise self.breaks
        self.sent.put_nowait(as_plain(item))

    async def aclose(self) -> None:
        """Nothing is open."""

    def say(self, *messages: JsonObject | Exception) -> None:
        for each in messages:
            self._said.put_nowait(each if isinstance(each, Exception) else as_message(each))

    def end(self) -> None:
        self._said.put_nowait(END)

    async def next_sent(self) -> JsonObject:
        async with asyncio.timeout(5):
            return await self.sent.get()


@asynccontextmanager
async def connected(
    server: Server,
    *,
    on_notification: Callable[[JsonObject], None] = lambda _: None,
    **options: Any,
) -> AsyncGenerator[McpConnection]:
    on_request = options.pop("on_request", None)
    connection = McpConnection(server.open, on_notification, on_request, **options)
    async with asyncio.timeout(5):
        await connection.opened()
        yield connection
        await connection.aclose()
    assert not connection.is_open


def unreadable(given: object) -> ValueError:
    """The error of a message that the package could not read."""

    class Unread(ValueError):
        def errors(self) -> list[JsonObject]:
            return [{"input": given}]

    return Unread("cannot\nbe read")


async def asked(connection: McpConnection, server: Server, number: int) -> asyncio.Task[JsonObject]:
    task = asyncio.create_task(connection.request(jsonrpc_request(number, "x")))
    assert (await server.next_sent())["id"] == number
    return task


async def test_responses_in_any_order_reach_the_requests_that_they_answer() -> None:
    server = Server()
    async with connected(server) as connection:
        first, second = [await asked(connection, server, number) for number in (1, 2)]
        was_waiting = connection.is_waiting
        server.say(jsonrpc_result(9, {}), jsonrpc_result(2, {"b": 2}), jsonrpc_result(1, {}))

        results = [(await each)["result"] for each in (first, second)]

        assert (results, was_waiting, connection.is_waiting) == ([{}, {"b": 2}], True, False)


@pytest.mark.parametrize("given", [{"id": 2, "result": 5}, '{"id" : 2, "result": {"a'])
async def test_an_answer_that_cannot_be_read_ends_the_wait_for_it(given: object) -> None:
    server = Server()
    async with connected(server) as connection:
        first, second = [await asked(connection, server, number) for number in (1, 2)]
        server.say(unreadable(given))

        error = (await second)["error"]
        why = connection.unreadable
        server.say(jsonrpc_result(1, {}))
        await first

        assert error["message"] == "the server's answer cannot be read: Unread: cannot be read"
        assert (why, connection.unreadable) == ("Unread: cannot be read", "")


@pytest.mark.parametrize(
    ("given", "noise", "is_ended"),
    [
        ("{half", True, True),
        ("a word on stdout", True, False),
        ("a word in a body", False, True),
        ({"id": "other"}, True, True),
    ],
)
async def test_the_only_wait_ends_unless_what_came_may_be_noise(
    given: object, *, noise: bool, is_ended: bool
) -> None:
    server = Server()
    async with connected(server, may_be_noise=noise) as connection:
        only = await asked(connection, server, 1)
        server.say(unreadable(given), OSError("the stream is about to end"))
        if not is_ended:
            server.say(jsonrpc_result(1, {}))

        assert ("error" in await only) is is_ended


async def test_of_several_waits_none_ends_by_an_answer_that_names_none() -> None:
    server = Server()
    async with connected(server) as connection:
        waiting = [await asked(connection, server, number) for number in (1, 2)]
        server.say(unreadable("{half"), jsonrpc_result(1, {}), jsonrpc_result(2, {}))

        assert [(await each).get("result") for each in waiting] == [{}, {}]


async def test_a_cancelled_wait_cancels_the_request() -> None:
    server = Server()
    async with connected(server) as connection:
        waiting = await asked(connection, server, 1)
        waiting.cancel()

        assert await server.next_sent() == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1, "reason": "the call was cancelled"},
        }
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert not connection.is_waiting


async def test_a_server_may_withdraw_its_own_request() -> None:
    server, begun, ended = Server(), asyncio.Event(), asyncio.Event()

    async def answer(_: JsonObject) -> JsonObject:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with connected(server, on_request=answer):
        server.say(jsonrpc_request(7, "ask"))
        await begun.wait()
        server.say(
            notification("notifications/cancelled"),
            notification("notifications/cancelled", {"requestId": 8}),
        )
        server.say(notification("notifications/cancelled", {"requestId": 7}))
        await ended.wait()

    assert server.sent.empty()


async def test_what_fails_here_is_logged_and_the_connection_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_: JsonObject) -> None:
        raise ZeroDivisionError

    async def fails_to_answer(_: JsonObject) -> JsonObject:
        raise ZeroDivisionError

    server = Server()
    with caplog.at_level(logging.ERROR, "steersman.tools"):
        async with connected(server, on_notification=fails, on_request=fails_to_answer):
            server.say(notification("news"), jsonrpc_request(7, "ask"))
            answer = await server.next_sent()

    assert (answer["id"], answer["error"]["message"]) == (7, "the client failed to answer")
    assert [each.getMessage() for each in caplog.records] == [
        "'news' of an MCP server could not be forwarded",
        "'ask' of an MCP server failed",
    ]


async def test_a_server_that_ends_ends_every_wait_with_the_reason() -> None:
    server = Server()
    async with connected(server) as connection:
        waiting = await asked(connection, server, 1)
        server.end()

        with pytest.raises(ConnectionLost, match="the server closed the connection"):
            await waiting
        with pytest.raises(ConnectionLost, match="the server closed the connection"):
            await connection.request(jsonrpc_request(2, "x"))


async def test_a_server_that_cannot_be_written_to_is_lost() -> None:
    server = Server()
    async with connected(server) as connection:
        server.breaks = BrokenPipeError("gone")
        server.end()

        with pytest.raises(ConnectionLost, match="the server closed the connection"):
            await connection.request(jsonrpc_request(1, "x"))


async def test_a_server_that_cannot_begin_says_why() -> None:
    @asynccontextmanager
    async def fails() -> AsyncGenerator[Streams]:
        raise ExceptionGroup("several", [FileNotFoundError("no such program")])
        yield

    connection = McpConnection(fails, lambda _: None, lambda _: asyncio.sleep(0, {}))

    with pytest.raises(ConnectionLost, match="FileNotFoundError: no such program"):
        await connection.opened()


def test_a_connection_that_does_not_end_is_left_after_a_while() -> None:
    async def close() -> float:
        may_end = asyncio.Event()

        @asynccontextmanager
        async def stays() -> AsyncGenerator[Streams]:
            server = Server()
            async with server.open() as streams:
                try:
                    yield streams
                finally:
                    await may_end.wait()

        connection = McpConnection(stays, lambda _: None, lambda _: asyncio.sleep(0, {}))
        await connection.opened()
        loop = asyncio.get_running_loop()
        loop.call_later(10 * CLOSE_TIMEOUT, may_end.set)
        began = loop.time()
        await connection.aclose()
        took = loop.time() - began
        may_end.set()
        return took

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        assert runner.run(close()) == CLOSE_TIMEOUT


def test_a_reason_is_one_line_that_is_not_too_long() -> None:
    nested = ExceptionGroup("a", [ExceptionGroup("b", [ValueError("one\n  two")]), KeyError()])

    assert reason_of(nested) == "ValueError: one two"
    assert reason_of(TimeoutError()) == "TimeoutError"
    assert len(reason_of(ValueError("x" * 1000))) == LONGEST_REASON
