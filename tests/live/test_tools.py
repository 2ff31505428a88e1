"""Python functions as tools, called by the stock CLI."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest

from steersman import Toolbox, ToolContext, tool
from steersman.journal import Kind
from steersman.testing.model import ScriptedModel
from steersman.testing.script import call, calls, say, when
from steersman.tools import ToolError, error_result, image_result
from tests.live.staging import LIMIT, MakeScripted, entries_of, entry_where

pytestmark = pytest.mark.live

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="nobody's")


@dataclass
class Point:
    x: int
    y: int = 0


def told(model: ScriptedModel) -> list[str]:
    """What the model was told by tools, in the order in which it was told."""
    results: dict[str, str] = {}
    for asked in model.asked:
        results |= asked.tool_results
    return list(results.values())


def blocks_told(model: ScriptedModel) -> list[dict[str, Any]]:
    """The last results that the model was told, as they stand in its request."""
    content = model.asked[-1].body["messages"][-1]["content"]
    return [block for block in content if block["type"] == "tool_result"]


async def test_text_structure_and_errors_reach_the_model(scripted: MakeScripted) -> None:
    async def greet(name: str) -> str:
        return f"Hello {name}."

    async def locate() -> Point:
        return Point(1, 2)

    @tool(always_load=True)
    async def search() -> Any:
        return error_result("nothing found")

    @tool(always_load=True)
    async def refuse() -> None:
        raise ToolError("not on a Sunday")

    agent, model = scripted(
        call("mcp__functions__greet", name="Ann"),
        call("mcp__functions__locate"),
        call("mcp__functions__search"),
        call("mcp__functions__refuse"),
        say("done"),
        functions=[greet, locate, search, refuse],
    )

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    assert result.outcome == "completed"
    assert told(model) == ["Hello Ann.", '{"x":1,"y":2}', "nothing found", "not on a Sunday"]


async def test_a_tool_that_is_always_loaded_stands_before_the_model_from_the_start(
    scripted: MakeScripted,
) -> None:
    @tool(always_load=True)
    async def known() -> None:
        raise ToolError("no")

    async def searched_for() -> None:
        raise ToolError("no")

    agent, model = scripted(
        call("mcp__functions__known"),
        call("mcp__functions__searched_for"),
        say("done"),
        functions=[known, searched_for],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    of_known, of_searched_for = told(model)
    assert "mcp__functions__known" in model.asked[0].tools
    assert "mcp__functions__searched_for" not in model.asked[0].tools
    assert of_known == "no"
    assert of_searched_for.startswith("no\n\nThis tool's input schema was not in your prompt")


async def test_an_image_is_seen_by_the_model(scripted: MakeScripted) -> None:
    def draw() -> Any:
        return image_result(PIXEL)

    agent, model = scripted(call("mcp__functions__draw"), say("done"), functions=[draw])

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    (result,) = blocks_told(model)
    (image, *_) = [block for block in result["content"] if block["type"] == "image"]
    assert image["source"]["media_type"] == "image/png"
    assert image["source"]["type"] == "base64"


async def test_an_exception_is_journalled_and_the_model_reads_no_more_than_its_kind(
    scripted: MakeScripted, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(always_load=True)
    async def fail() -> None:
        raise ValueError("postgres://admin:secret@db refused us")

    agent, model = scripted(call("mcp__functions__fail"), say("done"), functions=[fail])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        entries = await entries_of(session)

    assert told(model) == ["tool 'fail' failed: ValueError"]
    assert [dict(each.details) for each in entries if each.kind is Kind.TOOL_FAILED] == [
        {"tool": "fail", "error": "ValueError", "reason": ""}
    ]
    assert "postgres://admin:secret@db refused us" in caplog.text


async def test_wrong_arguments_do_not_reach_the_function_and_the_model_is_told_why(
    scripted: MakeScripted,
) -> None:
    called: list[Point] = []

    async def draw(point: Point) -> None:
        called.append(point)

    agent, model = scripted(
        call("mcp__functions__draw", point={"x": "one"}),
        call("mcp__functions__draw"),
        say("done"),
        functions=[draw],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    of_type, of_absence = told(model)
    assert called == []
    assert "invalid arguments for tool 'draw': point.x: Expected `int`, got `str`" in of_type
    assert "Object missing required field `point`" in of_absence


async def test_a_tool_may_take_two_seconds(scripted: MakeScripted) -> None:
    def work(context: ToolContext) -> str:
        context.progress(1, 2)
        return f"cancelled: {context.cancelled.wait(2)}"

    agent, model = scripted(call("mcp__functions__work"), say("done"), functions=[work])

    started = time.monotonic()
    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert told(model) == ["cancelled: False"]
    assert time.monotonic() - started >= 2


class Room:
    """Counts who is inside at the same time."""

    def __init__(self, waits_for: int) -> None:
        self.most = 0
        self._inside = 0
        self._waits_for = waits_for
        self._full = asyncio.Event()

    async def visit(self) -> None:
        self._inside += 1
        self.most = max(self.most, self._inside)
        if self._inside == self._waits_for:
            self._full.set()
        await self._full.wait()
        self._inside -= 1


async def test_calls_of_tools_that_only_read_run_at_the_same_time(scripted: MakeScripted) -> None:
    room = Room(waits_for=3)
    visit = tool(room.visit, name="visit", read_only=True)
    agent, _model = scripted(
        calls(*[call("mcp__functions__visit")] * 3), say("done"), functions=[visit]
    )

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    assert result.outcome == "completed"
    assert room.most == 3


async def test_calls_of_other_tools_run_one_after_the_other(scripted: MakeScripted) -> None:
    room = Room(waits_for=1)
    visit = tool(room.visit, name="visit")
    agent, _model = scripted(
        calls(*[call("mcp__functions__visit")] * 3), say("done"), functions=[visit]
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert room.most == 1


async def test_an_interrupt_reaches_a_running_tool_within_a_second(scripted: MakeScripted) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    agent, _model = scripted(call("mcp__functions__wait"), functions=[wait])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        await started.wait()
        async with asyncio.timeout(1):
            await turn.interrupt()
            await ended.wait()
        result = await turn

    assert result.outcome == "interrupted"


async def test_an_interrupt_reaches_a_tool_in_a_thread_within_a_second(
    scripted: MakeScripted,
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait(context: ToolContext) -> None:
        loop.call_soon_threadsafe(started.set)
        if context.cancelled.wait(LIMIT):
            loop.call_soon_threadsafe(ended.set)

    agent, _model = scripted(call("mcp__functions__wait"), functions=[wait])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        await started.wait()
        async with asyncio.timeout(1):
            await turn.interrupt()
            await ended.wait()
        result = await turn

    assert result.outcome == "interrupted"


async def test_a_tool_that_the_cli_gives_up_on_is_cancelled(scripted: MakeScripted) -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    agent, model = scripted(
        call("mcp__functions__wait"),
        say("done"),
        functions=[wait],
        env={"MCP_TOOL_TIMEOUT": "1000"},
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")
        await ended.wait()

    assert told(model) == ['MCP server "functions" tool "wait" timed out after 1s']


async def test_a_timeout_of_ours_is_told_to_the_model(scripted: MakeScripted) -> None:
    @tool(timeout=0.1, always_load=True)
    async def wait() -> None:
        await asyncio.Event().wait()

    agent, model = scripted(call("mcp__functions__wait"), say("done"), functions=[wait])

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert told(model) == ["tool 'wait' failed: timed out after 0.1 s"]


async def test_a_long_call_gives_signs_of_life(scripted: MakeScripted) -> None:
    enough = asyncio.Event()

    async def work() -> str:
        await enough.wait()
        return "worked"

    agent, model = scripted(
        call("mcp__slow__work"),
        say("done"),
        mcp_servers={"slow": Toolbox("slow", [work], heartbeat=0.1)},
        allowed_tools=["mcp__slow"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        beat = await entry_where(session, lambda entry: b"notifications/progress" in entry.line)
        enough.set()
        await turn

    assert beat.kind is Kind.SENT
    assert told(model) == ["worked"]


@pytest.mark.soak_only
@pytest.mark.slow
async def test_a_cli_that_gives_up_on_silent_tools_waits_for_those_that_give_signs_of_life(
    scripted: MakeScripted,
) -> None:
    """It looks every 30 s, so this takes as long; hardly anything happens meanwhile."""
    started, given_up = asyncio.Event(), asyncio.Event()

    async def silent() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async def alive() -> str:
        started.set()
        await given_up.wait()
        return "worked"

    agents = [
        scripted(
            call(f"mcp__box__{each.__name__}"),
            say("done"),
            mcp_servers={"box": Toolbox("box", [each], heartbeat=heartbeat)},
            allowed_tools=["mcp__box"],
            env={"CLAUDE_CODE_SDK_MCP_TOOL_IDLE_TIMEOUT": "10000"},
        )
        for each, heartbeat in [(silent, None), (alive, 4)]
    ]

    async with asyncio.timeout(2 * LIMIT):
        (agent_of_silent, _), (agent_of_alive, _) = agents
        living = asyncio.ensure_future(agent_of_alive.run("go"))
        # So that it has been looked at before the other one is given up.
        await started.wait()
        await agent_of_silent.run("go")
        await living

    (of_silent,), (of_alive,) = [told(model) for _, model in agents]
    assert "sent no response or progress for 30s" in of_silent
    assert of_alive == "worked"


async def test_tools_run_in_the_context_of_the_prompt_that_caused_them(
    scripted: MakeScripted,
) -> None:
    seen: list[tuple[str, str, Any, Any, Any]] = []

    def look(name: str, context: ToolContext) -> None:
        seen.append(
            (name, REQUEST.get(), context.turn.uuid, context.deps, context.session.id),
        )

    async def look_here(name: str, context: ToolContext) -> None:
        look(name, context)

    agent, _model = scripted(
        when(
            "one",
            call("mcp__functions__look", name="a"),
            call("mcp__functions__look_here", name="b"),
            say("1"),
        ),
        when(
            "two",
            call("mcp__functions__look", name="c"),
            call("mcp__functions__look_here", name="d"),
            say("2"),
        ),
        functions=[look, look_here],
        deps={"db": 1},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        REQUEST.set("the first")
        first = await session.send("one")
        REQUEST.set("the second")
        second = await session.send("two")
        await first
        await second
        rest = ({"db": 1}, session.id)

    assert seen == [
        ("a", "the first", first.uuid, *rest),
        ("b", "the first", first.uuid, *rest),
        ("c", "the second", second.uuid, *rest),
        ("d", "the second", second.uuid, *rest),
    ]


async def test_the_context_knows_the_id_of_the_call(scripted: MakeScripted) -> None:
    keys: list[str] = []

    async def look(context: ToolContext) -> None:
        keys.append(context.call_key)

    agent, _model = scripted(
        call("mcp__functions__look", id_="toolu_first"),
        call("mcp__functions__look", id_="toolu_second"),
        say("done"),
        functions=[look],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert keys == ["toolu_first", "toolu_second"]


async def test_a_blocking_tool_in_one_session_delays_no_message_of_another(
    scripted: MakeScripted,
) -> None:
    release = threading.Event()
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def block() -> bool:
        loop.call_soon_threadsafe(started.set)
        return release.wait(LIMIT)

    slow, slow_model = scripted(call("mcp__functions__block"), say("done"), functions=[block])
    quick, _model = scripted(say("One two three four five.", chunks=5))

    async with asyncio.timeout(LIMIT), slow.session() as held, quick.session() as free:
        blocked = await held.send("go")
        await started.wait()
        outcome = await (await free.send("go"))
        was_settled = blocked.is_settled
        release.set()
        await blocked

    assert outcome.text == "One two three four five."
    assert not was_settled
    assert told(slow_model) == ["true"]


async def test_a_tool_that_blocks_the_event_loop_is_journalled(scripted: MakeScripted) -> None:
    async def rude() -> str:
        threading.Event().wait(0.5)
        return "sorry"

    agent, model = scripted(
        call("mcp__box__rude"),
        say("done"),
        mcp_servers={"box": Toolbox("box", [rude], stall_after=0.2)},
        allowed_tools=["mcp__box"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        entry = await entry_where(session, lambda entry: entry.kind is Kind.TOOL_FAILED)
        await turn

    assert entry.details["tool"] == "rude"
    assert "blocked the event loop for" in entry.details["reason"]
    assert told(model) == ["sorry"]
