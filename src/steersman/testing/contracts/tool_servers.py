"""The contract of `ToolServer`, as tests for any in-process MCP server.

Each contract makes a server of its own and serves one or two sessions with it. The server must have
the tools `add` (the sum of the numbers `a` and `b`, as text), `fail` (raises an error) and `hang`
(never returns). Knows the port and no adapter.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from steersman._json import Json, JsonDict
from steersman.ports import INVALID_PARAMS, METHOD_NOT_FOUND, Caller, JsonObject, ToolServer

LIMIT = 20.0
"""Seconds that any wait of a contract may last."""
PROTOCOL_VERSION = "2025-06-18"
NAMES = {"add", "fail", "hang"}

MakeToolServer: TypeAlias = Callable[[], ToolServer]
ToolServerContract: TypeAlias = Callable[[MakeToolServer], Awaitable[None]]


async def initialize_announces_the_server_and_its_tools(make: MakeToolServer) -> None:
    """`initialize` returns a protocol version, the capability `tools` and the server's name."""
    async with attached(make()) as session:
        result = await session.initialize()

    assert isinstance(result["protocolVersion"], str)
    assert "tools" in result["capabilities"]
    assert isinstance(result["serverInfo"]["name"], str)


async def initialize_may_come_again(make: MakeToolServer) -> None:
    """A CLI that was restarted sends `initialize` again, in the same session."""
    async with attached(make()) as session:
        first = await session.initialize()
        second = await session.initialize()

        assert first == second
        assert await session.add(1, 2) == "3"


async def tools_are_listed_with_their_input_schemas(make: MakeToolServer) -> None:
    """`tools/list` returns every tool with a JSON Schema for an object."""
    async with initialized(make()) as session:
        listed = await session.result("tools/list")

    assert {each["name"] for each in listed["tools"]} >= NAMES
    assert {each["inputSchema"]["type"] for each in listed["tools"]} == {"object"}


async def tool_names_hold_only_tools_that_are_listed(make: MakeToolServer) -> None:
    """`tool_names` may be incomplete, but it names no tool that does not exist."""
    server = make()
    async with initialized(server) as session:
        listed = await session.result("tools/list")

        assert set(server.tool_names) <= {each["name"] for each in listed["tools"]}


async def a_call_returns_content(make: MakeToolServer) -> None:
    """The result of `tools/call` has content blocks, and no error."""
    async with initialized(make()) as session:
        result = await session.call("add", a=2, b=3)

    assert [block["text"] for block in result["content"]] == ["5"]
    assert not result.get("isError", False)


async def a_tool_that_raises_is_a_result_with_an_error(make: MakeToolServer) -> None:
    """A failure of the tool is a result that the model reads, not a JSON-RPC error."""
    async with initialized(make()) as session:
        result = await session.call("fail")

    assert result["isError"] is True


async def an_unknown_tool_is_refused(make: MakeToolServer) -> None:
    """A call of a tool that does not exist is answered, by either kind of error."""
    async with initialized(make()) as session:
        answer = await session.request("tools/call", {"name": "nothing", "arguments": {}})

    assert "error" in answer or answer["result"]["isError"] is True


async def an_unknown_method_is_refused_by_its_code(make: MakeToolServer) -> None:
    """A request with a method that no server has is answered with "method not found".

    Servers of `mcp` 1.x validate method and params together, and answer "invalid params".
    """
    async with initialized(make()) as session:
        answer = await session.request("unknown/method")

    assert answer["error"]["code"] in (METHOD_NOT_FOUND, INVALID_PARAMS)


async def a_ping_is_answered(make: MakeToolServer) -> None:
    """`ping` has an empty result."""
    async with initialized(make()) as session:
        assert await session.result("ping") == {}


async def a_notification_has_no_answer(make: MakeToolServer) -> None:
    """Notifications return `None`, also the cancellation of a request that is not open."""
    async with initialized(make()) as session:
        for method in ("notifications/initialized", "notifications/roots/list_changed"):
            assert await session.send({"jsonrpc": "2.0", "method": method}) is None
        cancelled = {"requestId": 999, "reason": "not needed"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
        assert await session.send(message) is None


async def an_answer_has_the_id_of_its_request(make: MakeToolServer) -> None:
    """Ids are numbers, zero included, or strings; the answer repeats them."""
    async with initialized(make()) as session:
        for request_id in (0, 7, "seven"):
            answer = await session.request("tools/list", request_id=request_id)

            assert answer["id"] == request_id
            assert answer["jsonrpc"] == "2.0"


async def calls_at_the_same_time_have_their_own_answers(make: MakeToolServer) -> None:
    """Of calls that run at the same time, each is answered with its own result."""
    async with initialized(make()) as session:
        sums = await asyncio.gather(*(session.add(n, n) for n in range(8)))

    assert sums == [str(n + n) for n in range(8)]


async def a_cancelled_call_ends_and_others_continue(make: MakeToolServer) -> None:
    """Cancelling `handle` ends the wait; the server then serves other calls."""
    async with initialized(make()) as session:
        hanging = asyncio.ensure_future(session.call("hang"))
        beside = await session.add(1, 1)
        hanging.cancel()
        await asyncio.wait([hanging], timeout=LIMIT)

        assert hanging.cancelled()
        assert beside == "2"
        assert await session.add(2, 2) == "4"


async def two_sessions_are_served_apart(make: MakeToolServer) -> None:
    """Two sessions may use the same request ids, and one may end before the other."""
    server = make()
    async with initialized(server) as first:
        async with initialized(server) as second:
            sums = await asyncio.gather(first.add(1, 2), second.add(3, 4))
            assert [*sums] == ["3", "7"]

        assert await first.add(5, 6) == "11"


async def a_session_may_be_attached_after_another_has_ended(make: MakeToolServer) -> None:
    """A server that has no session any more can serve a new one."""
    server = make()
    for _ in range(2):
        async with initialized(server) as session:
            assert await session.add(1, 2) == "3"


TOOL_SERVER_CONTRACTS: tuple[ToolServerContract, ...] = (
    initialize_announces_the_server_and_its_tools,
    initialize_may_come_again,
    tools_are_listed_with_their_input_schemas,
    tool_names_hold_only_tools_that_are_listed,
    a_call_returns_content,
    a_tool_that_raises_is_a_result_with_an_error,
    an_unknown_tool_is_refused,
    an_unknown_method_is_refused_by_its_code,
    a_ping_is_answered,
    a_notification_has_no_answer,
    an_answer_has_the_id_of_its_request,
    calls_at_the_same_time_have_their_own_answers,
    a_cancelled_call_ends_and_others_continue,
    two_sessions_are_served_apart,
    a_session_may_be_attached_after_another_has_ended,
)


class Session:
    """Sends messages to a server as one session does."""

    def __init__(self, server: ToolServer) -> None:
        self._server = server
        self._ids = itertools.count(1)
        self.notifications: list[JsonObject] = []
        self.caller = Caller("session", "key", self.notifications.append)

    async def send(self, message: JsonObject) -> Json:
        """Pass one message to `handle` and return the answer."""
        async with asyncio.timeout(LIMIT):
            return await self._server.handle(message, self.caller)

    async def request(
        self, method: str, params: JsonObject | None = None, request_id: int | str | None = None
    ) -> Json:
        """Send a request and return the whole answer."""
        number = next(self._ids) if request_id is None else request_id
        message: JsonDict = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        return await self.send(message)

    async def result(self, method: str, params: JsonObject | None = None) -> Json:
        """Send a request and return its result."""
        answer = await self.request(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def initialize(self) -> Json:
        """Perform the handshake and return the result of `initialize`."""
        client = {"name": "contract", "version": "1"}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        result = await self.result("initialize", params)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    async def call(self, tool: str, **arguments: object) -> Json:
        """Call a tool and return the result."""
        return await self.result("tools/call", {"name": tool, "arguments": arguments})

    async def add(self, a: int, b: int) -> str:
        """Call `add` and return the text of its result."""
        result = await self.call("add", a=a, b=b)
        return "".join(block["text"] for block in result["content"])


@asynccontextmanager
async def attached(server: ToolServer) -> AsyncGenerator[Session]:
    """Attach a session to `server`, and detach it at the end."""
    session = Session(server)
    try:
        async with asyncio.timeout(LIMIT):
            await server.attach(session.caller)
        yield session
    finally:
        async with asyncio.timeout(LIMIT):
            await server.detach(session.caller)


@asynccontextmanager
async def initialized(server: ToolServer) -> AsyncGenerator[Session]:
    """Attach a session to `server` and perform the handshake."""
    async with attached(server) as session:
        await session.initialize()
        yield session
