from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import ToolExecutionError, UsageError
from steersman.ports import Caller, JsonObject
from steersman.tools import (
    Prompt,
    Resource,
    Tool,
    Toolbox,
    ToolContext,
    ToolError,
    error_result,
    tool,
)
from tests.tools.clients import Client, failure, text

REQUEST_ID: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


@dataclass
class Point:
    x: int
    y: int = 0


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
            "capabilities": {"tools": {"listChanged": True}},
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
        ("prompts/list", {}, -32601),
        ("logging/setLevel", {"level": "info"}, -32601),
        ("tools/list", {"cursor": "2"}, -32602),
        ("ping", "now", -32602),
        ("ping", [], -32602),
        ("initialize", "", -32602),
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside),
    max_leaves=8,
)
METHODS = ["initialize", "tools/list", "tools/call", "resources/read", "prompts/get", "ping"]
PARAMS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["add", "greet"]) | JSON,
        "uri": st.just("note://a") | JSON,
        "arguments": st.fixed_dictionaries({"a": JSON, "b": JSON}) | JSON,
        "_meta": st.fixed_dictionaries({}, optional={"progressToken": JSON}) | JSON,
    },
)


@given(method=st.sampled_from(METHODS) | JSON, number=st.integers() | st.text(), params=PARAMS)
def test_every_request_is_answered_once_under_its_own_id(
    method: Any, number: int | str, params: Any
) -> None:
    resource, greet = Resource("note://a", "a"), Prompt("greet", "", in_the_loop)
    client = Client(box=Toolbox("box", [add], resources=[resource], prompts=[greet]))

    answer = asyncio.run(client.send({"id": number, "method": method, "params": params}))

    assert answer["id"] == number
    assert len(answer.keys() & {"result", "error"}) == 1
    assert answer.get("error", {}).get("code") != -32603


async def in_the_loop(name: str = "") -> str:
    return name


async def test_a_fault_of_our_own_gets_an_error_with_the_id() -> None:
    client = Client(add)
    client.caller = None  # type: ignore[assignment]

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
        raise ValueError("postgres://admin:secret@db refused us")

    result = await Client(fail).call("fail")

    assert result == failure("tool 'fail' failed: ValueError")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("steersman.tools", logging.ERROR)
    assert record.exc_info is not None
    logged = record.exc_info[1]
    assert isinstance(logged, ToolExecutionError)
    assert isinstance(logged.__cause__, ValueError)


async def test_a_toolbox_may_explain_errors_to_the_model(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("x" * 1000)

    def explain_badly(error: BaseException) -> str:
        raise error

    told = await Client(box=Toolbox("box", [fail], explain=str)).call("fail")
    told_badly = await Client(box=Toolbox("box", [fail], explain=explain_badly)).call("fail")

    assert told == failure(f"tool 'fail' failed: {'x' * 499}…")
    assert told_badly == failure("tool 'fail' failed: ValueError")
    assert "the explanation of an error failed" in caplog.text


async def test_a_failure_is_reported_and_an_error_for_the_model_is_not() -> None:
    error = ValueError("no")

    async def fail() -> None:
        raise error

    def fail_in_thread() -> None:
        raise error

    async def refuse() -> None:
        raise ToolError("not you")

    client = Client(fail, fail_in_thread, refuse)
    await client.call("fail")
    await client.call("fail_in_thread")
    await client.call("refuse")
    await client.call("fail", unknown=1)

    assert client.reported == [("fail", error), ("fail_in_thread", error)]


async def test_a_class_that_fails_while_it_is_read_is_a_failure_of_the_tool() -> None:
    @dataclass
    class Fussy:
        x: int

        def __post_init__(self) -> None:
            raise KeyError("x")

    async def take(fussy: Fussy) -> None: ...

    assert await Client(take).call("take", fussy={"x": 1}) == failure(
        "tool 'take' failed: KeyError"
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


async def test_a_result_that_json_cannot_carry_is_a_failure_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def give() -> bytes:
        return b"\x00"

    assert await Client(give).call("give") == failure("tool 'give' failed: TypeError")
    assert "image_result" in caplog.text


async def test_a_tool_that_exits_does_not_end_the_program() -> None:
    def leave() -> None:
        sys.exit(3)

    async def leave_at_once() -> None:
        sys.exit(3)

    client = Client(leave, leave_at_once)

    assert await client.call("leave") == failure("tool 'leave' failed: SystemExit")
    assert await client.call("leave_at_once") == failure("tool 'leave_at_once' failed: SystemExit")


async def test_a_thread_that_raises_stop_iteration_is_answered() -> None:
    def empty() -> None:
        raise StopIteration

    assert await Client(empty).call("empty") == failure("tool 'empty' failed: RuntimeError")


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


async def test_the_context_identifies_the_call() -> None:
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
    listen = client.notifications.append

    def notify(message: JsonObject) -> None:
        heard_in.append(threading.current_thread())
        listen(message)

    client.caller = Caller("session-1", "key", notify)
    await client.call("waiting")
    await client.call("blocking")

    assert [each["params"] for each in client.notifications] == [
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

    assert client.notifications == []
    assert answer["result"] == text("session-1/key/work/7")


def test_a_context_can_be_made_by_hand() -> None:
    context = ToolContext(tool_name="x")

    context.progress(1)

    assert (context.tool_name, context.progressed) == ("x", 1)


async def late() -> None:
    """A tool that comes late."""


async def attached(box: Toolbox) -> list[JsonObject]:
    """Attach a session and return the notifications that the toolbox sends to one session."""
    notifications: list[JsonObject] = []
    await box.attach(Caller("session", "key", notifications.append))
    return notifications


async def test_every_session_is_notified_of_added_and_removed_tools() -> None:
    box = Toolbox("box", [add])
    heard = [await attached(box), await attached(box)]
    gone: list[JsonObject] = []
    left = Caller("session", "key", gone.append)
    await box.attach(left)
    await box.detach(left)

    box.register(tool(late))
    names = box.tool_names
    box.unregister("late", add)

    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert heard == [[changed, changed], [changed, changed]]
    assert gone == []
    assert names == ("add", "late")
    assert box.tool_names == ()


async def test_tools_may_be_registered_in_another_thread() -> None:
    box = Toolbox("box")
    heard_in: list[threading.Thread] = []
    told = asyncio.Event()

    def hear(_: JsonObject) -> None:
        heard_in.append(threading.current_thread())
        told.set()

    await box.attach(Caller("session", "key", hear))
    async with asyncio.timeout(5):
        await asyncio.to_thread(box.register, add)
        await told.wait()

    assert heard_in == [threading.main_thread()]


async def test_a_tool_that_was_registered_can_be_called_and_one_that_is_gone_cannot() -> None:
    client = Client()

    client.toolbox.register(add)
    called = await client.call("add", a=1, b=2)
    client.toolbox.unregister(add)
    refused = await client.ask("tools/call", {"name": "add"})

    assert called == text("3.0")
    assert refused["error"] == {"code": -32602, "message": "name: there is no tool 'add'"}


def test_of_several_tools_all_are_registered_or_none() -> None:
    box = Toolbox("box", [add])

    with pytest.raises(UsageError, match=r"test_toolbox\.add and .*test_toolbox\.add share"):
        box.register(late, add)
    with pytest.raises(UsageError, match="one of those here: add"):
        box.unregister("add", "other")
    with pytest.raises(UsageError, match="one of those here: add"):
        box.unregister(late)
    with pytest.raises(UsageError, match="one of those here: add"):
        box.unregister({})  # type: ignore[arg-type]

    assert box.tool_names == ("add",)


async def test_a_function_is_unregistered_as_it_was_given() -> None:
    box = Toolbox("box", [add, late])

    box.unregister(late)

    assert box.tool_names == ("add",)


def test_tools_may_come_from_many_threads_at_once() -> None:
    box = Toolbox("box")
    ready = threading.Barrier(8)

    def register(number: int) -> None:
        ready.wait(5)
        for each in range(20):
            box.register(tool(late, name=f"late_{number}_{each}"))

    threads = [threading.Thread(target=register, args=[number]) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(5)

    assert len(box.tool_names) == 160


async def test_instructions_are_for_the_model() -> None:
    answer = await Client(box=Toolbox("box", instructions="Be kind.")).ask("initialize", {})

    assert answer["result"]["instructions"] == "Be kind."


def test_two_tools_of_one_name_are_refused_with_both() -> None:
    def other(a: int) -> int:
        return a

    with pytest.raises(UsageError, match=r"test_toolbox\.add and .*\.other share"):
        Toolbox("box", [add, tool(other, name="add")])


@pytest.mark.parametrize(
    ("argument", "given"),
    [("heartbeat", 0), ("heartbeat", True), ("stall_after", "1"), ("explain", "str")],
)
def test_a_manner_that_cannot_be_is_refused(argument: str, given: Any) -> None:
    manner: Any = {argument: given}

    with pytest.raises(UsageError) as refused:
        Toolbox("box", **manner)

    assert refused.value.argument == argument


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_toolbox_needs_a_name(name: Any) -> None:
    with pytest.raises(UsageError) as refused:
        Toolbox(name)

    assert refused.value.argument == "name"


def test_what_is_neither_tool_nor_function_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Toolbox("box", ["add"])  # type: ignore[list-item]

    assert refused.value.argument == "tools"
