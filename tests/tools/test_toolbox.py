from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from steersman.errors import ToolExecutionError, UsageError
from steersman.ports import Caller, JsonObject, ToolServer
from steersman.tools import Tool, Toolbox, ToolContext, ToolError, error_result, tool

REQUEST_ID: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


@dataclass
class Point:
    x: int
    y: int = 0


class Client:
    """Speaks to a toolbox as one session does."""

    def __init__(self, *tools: Any) -> None:
        self.toolbox: ToolServer = Toolbox("box", tools)
        self.heard: list[JsonObject] = []
        self._caller = Caller("session-1", "key", self.heard.append)

    async def send(self, message: JsonObject) -> Any:
        async with asyncio.timeout(5):
            return await self.toolbox.handle(message, self._caller)

    async def ask(self, method: Any, params: Any = None) -> Any:
        return await self.send({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})

    async def call(self, name: str, /, **arguments: Any) -> Any:
        meta = {"claudecode/toolUseId": "toolu_1", "progressToken": 3}
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments, "_meta": meta})
        return answer["result"]


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def failure(words: str) -> dict[str, Any]:
    return {**text(words), "isError": True}


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_known_protocol_version_is_echoed(version: str) -> None:
    answer = await Client().ask("initialize", {"protocolVersion": version, "capabilities": {}})

    assert answer == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "box", "version": "1.0.0"},
        },
    }


@pytest.mark.parametrize("version", ["2999-01-01", None, 3, ["2025-06-18"]])
async def test_an_unknown_protocol_version_is_answered_with_the_newest(version: Any) -> None:
    answer = await Client().ask("initialize", {"protocolVersion": version})

    assert answer["result"]["protocolVersion"] == "2025-11-25"


async def test_ping_and_list_are_answered() -> None:
    client = Client(add)

    assert await client.ask("ping") == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert (await client.ask("tools/list"))["result"] == {"tools": [add.listed()]}
    assert client.toolbox.tool_names == ("add",)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "notifications/never/heard/of"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
async def test_notifications_and_answers_get_no_answer(message: JsonObject) -> None:
    assert await Client().send(message) is None


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("resources/list", {}, -32601),
        ("tools/call", {"name": "nothing"}, -32602),
        ("tools/call", {"name": ["add"]}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "add", "arguments": [1]}, -32602),
        ("tools/call", {"name": "add", "arguments": "a"}, -32602),
        ("tools/call", [1], -32602),
        (3, {}, -32600),
    ],
)
async def test_a_request_that_cannot_be_served_gets_an_error_with_its_id(
    method: Any, params: Any, code: int
) -> None:
    answer = await Client(add).ask(method, params)

    assert (answer["id"], answer["error"]["code"]) == (7, code)
    assert answer["error"]["message"]
    assert "result" not in answer


async def test_a_fault_of_our_own_gets_an_error_with_the_id() -> None:
    client = Client(add)
    client._caller = None  # type: ignore[assignment]

    answer = await client.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})

    assert (answer["id"], answer["error"]["code"]) == (7, -32603)


async def test_strange_metadata_does_not_spoil_the_call() -> None:
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": "odd"}

    assert (await Client(add).ask("tools/call", params))["result"] == text("3.0")


async def test_functions_and_tools_are_called() -> None:
    def double(x: int) -> int:
        return 2 * x

    client = Client(add, double, Tool("half", "", {"x": "number"}, lambda given: given["x"] / 2))

    assert await client.call("add", a=2, b=3) == text("5.0")
    assert await client.call("double", x=2) == text("4")
    assert await client.call("half", x=3) == text("1.5")


async def test_arguments_may_be_missing_altogether() -> None:
    async def hello() -> str:
        return "hello"

    answer = await Client(hello).ask("tools/call", {"name": "hello"})

    assert answer["result"] == text("hello")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"p": {"x": "1"}}, "p.x: Expected `int`, got `str`"),
        ({}, "Object missing required field `p`"),
        ({"p": {"x": 1}, "q": 1}, "Object contains unknown field `q`"),
    ],
)
async def test_wrong_arguments_never_reach_the_handler(given: Any, reason: str) -> None:
    called: list[Point] = []

    async def draw(p: Point) -> None:
        called.append(p)

    assert await Client(draw).call("draw", **given) == failure(
        f"invalid arguments for tool 'draw': {reason}"
    )
    assert called == []


async def test_a_failing_tool_is_logged_and_the_model_reads_a_short_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("x" * 1000)

    result = await Client(fail).call("fail")

    assert result["isError"] is True
    assert result["content"][0]["text"] == f"tool 'fail' failed: ValueError: {'x' * 499}…"
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("steersman.tools", logging.ERROR)
    assert record.exc_info is not None
    failure = record.exc_info[1]
    assert isinstance(failure, ToolExecutionError)
    assert isinstance(failure.__cause__, ValueError)


async def test_a_class_that_fails_while_it_is_read_is_a_failure_of_the_tool() -> None:
    @dataclass
    class Fussy:
        x: int

        def __post_init__(self) -> None:
            raise KeyError("x")

    async def take(fussy: Fussy) -> None: ...

    assert await Client(take).call("take", fussy={"x": 1}) == failure(
        "tool 'take' failed: KeyError: 'x'"
    )


async def test_a_tool_error_reaches_the_model_verbatim_and_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    words = "no such row\n" * 100

    async def find() -> None:
        raise ToolError(words)

    def find_in_thread() -> None:
        raise ToolError(words)

    client = Client(find, find_in_thread)

    assert await client.call("find") == failure(words)
    assert await client.call("find_in_thread") == failure(words)
    assert caplog.records == []


async def test_an_error_result_is_an_error() -> None:
    async def find() -> Any:
        return error_result("nothing found")

    assert await Client(find).call("find") == failure("nothing found")


async def test_a_result_that_json_cannot_carry_is_a_failure() -> None:
    async def give() -> bytes:
        return b"\x00"

    result = await Client(give).call("give")

    assert result["isError"] is True
    assert "image_result" in result["content"][0]["text"]


async def test_a_tool_that_exits_does_not_end_the_program() -> None:
    def leave() -> None:
        sys.exit(3)

    async def leave_at_once() -> None:
        sys.exit(3)

    client = Client(leave, leave_at_once)

    assert await client.call("leave") == failure("tool 'leave' failed: SystemExit: 3")
    assert await client.call("leave_at_once") == failure(
        "tool 'leave_at_once' failed: SystemExit: 3"
    )


async def test_a_thread_that_raises_stop_iteration_is_answered() -> None:
    def empty() -> None:
        raise StopIteration

    assert await Client(empty).call("empty") == failure(
        "tool 'empty' failed: RuntimeError: the tool raised StopIteration"
    )


async def test_plain_functions_run_in_threads_and_coroutines_on_the_loop() -> None:
    def blocking() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def waiting() -> bool:
        return threading.current_thread() is threading.main_thread()

    client = Client(blocking, waiting)

    assert await client.call("blocking") == text("false")
    assert await client.call("waiting") == text("true")


async def test_a_blocking_tool_holds_up_no_other() -> None:
    released = threading.Event()

    def block() -> bool:
        return released.wait(5)

    async def release() -> None:
        released.set()

    client = Client(block, release)

    blocked, _ = await asyncio.gather(client.call("block"), client.call("release"))

    assert blocked == text("true")


async def test_a_plain_function_may_give_an_awaitable_back() -> None:
    async def later() -> str:
        return "later"

    def start() -> Any:
        return later()

    assert await Client(start).call("start") == text("later")


async def test_tools_run_in_the_contextvars_of_their_caller() -> None:
    def blocking() -> str:
        return REQUEST_ID.get()

    async def waiting() -> str:
        return REQUEST_ID.get()

    client = Client(blocking, waiting)

    async def as_request(name: str, request_id: str) -> Any:
        REQUEST_ID.set(request_id)
        return await client.call(name)

    seen = await asyncio.gather(
        as_request("blocking", "r1"), as_request("waiting", "r2"), as_request("blocking", "r3")
    )

    assert list(seen) == [text("r1"), text("r2"), text("r3")]
    assert REQUEST_ID.get() == "none"


async def test_a_cancelled_call_is_cancelled_inside_the_tool() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    call = asyncio.ensure_future(Client(wait).call("wait"))
    async with asyncio.timeout(5):
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    assert cancelled.is_set()


async def test_a_cancelled_call_does_not_wait_for_its_thread() -> None:
    started, released = threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        released.wait(5)

    call = asyncio.ensure_future(Client(block).call("block"))
    async with asyncio.timeout(5):
        await asyncio.to_thread(started.wait, 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    released.set()


async def test_a_cancellation_of_the_tools_own_making_is_a_failure() -> None:
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    assert await Client(cancel_itself).call("cancel_itself") == failure(
        "tool 'cancel_itself' failed: CancelledError"
    )


async def test_the_context_tells_which_call_this_is() -> None:
    seen: list[ToolContext] = []

    async def by_name(context: ToolContext, x: int) -> None:
        seen.append(context)

    @tool("by_dict", "", {"x": "integer"})
    async def by_dict(args: dict[str, Any], context: ToolContext) -> None:
        seen.append(context)

    client = Client(by_name, by_dict)
    await client.call("by_name", x=1)
    await client.call("by_dict", x=1)

    assert [
        (each.tool_name, each.tool_use_id, each.session_id, each.server, each.call_key)
        for each in seen
    ] == [
        ("by_name", "toolu_1", "session-1", "key", "toolu_1"),
        ("by_dict", "toolu_1", "session-1", "key", "toolu_1"),
    ]


async def test_progress_is_sent_from_the_loop_and_from_threads() -> None:
    heard_in: list[threading.Thread] = []

    async def waiting(context: ToolContext) -> None:
        context.progress(1, 2, "half")

    def blocking(context: ToolContext) -> None:
        context.progress(2)

    client = Client(waiting, blocking)
    listen = client.heard.append

    def notify(message: JsonObject) -> None:
        heard_in.append(threading.current_thread())
        listen(message)

    client._caller = Caller("session-1", "key", notify)
    await client.call("waiting")
    await client.call("blocking")

    assert [each["params"] for each in client.heard] == [
        {"progressToken": 3, "progress": 1, "total": 2, "message": "half"},
        {"progressToken": 3, "progress": 2},
    ]
    assert set(heard_in) == {threading.main_thread()}


async def test_progress_that_nobody_asked_for_is_not_sent() -> None:
    async def work(context: ToolContext) -> str:
        context.progress(1)
        return context.call_key

    client = Client(work)
    answer = await client.ask("tools/call", {"name": "work"})

    assert client.heard == []
    assert answer["result"] == text("session-1/key/work/7")


def test_a_context_can_be_made_by_hand() -> None:
    ToolContext(tool_name="x").progress(1)


def test_two_tools_of_one_name_are_refused_with_both() -> None:
    def other(a: int) -> int:
        return a

    with pytest.raises(UsageError, match=r"test_toolbox\.add and .*\.other share"):
        Toolbox("box", [add, tool(other, name="add")])


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_toolbox_needs_a_name(name: Any) -> None:
    with pytest.raises(UsageError) as refused:
        Toolbox(name)

    assert refused.value.argument == "name"


def test_what_is_neither_tool_nor_function_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Toolbox("box", ["add"])  # type: ignore[list-item]

    assert refused.value.argument == "tools"
