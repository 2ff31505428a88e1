"""A session is used in the event loop that started it; elsewhere there is an error, not a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman import Agent, Allow, Deny, Inbox, Session, Turn, tool
from steersman.agent import Checkpoint
from steersman.control import GetContextUsage
from steersman.errors import UsageError
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened

UUID = "12345678-1234-4234-8234-123456789abc"

Use = Callable[[Session, Turn], Awaitable[Any]]

USES: dict[str, Use] = {
    "send": lambda session, _: session.send("more"),
    "run": lambda session, _: session.run("more"),
    "command": lambda session, _: session.command("/compact"),
    "await turn": lambda _, turn: turn.result(),
    "interrupt": lambda _, turn: turn.interrupt(),
    "withdraw": lambda _, turn: turn.withdraw(),
    "text": lambda _, turn: anext(turn.text()),
    "turn's messages": lambda _, turn: anext(aiter(turn)),
    "turn's lines": lambda _, turn: anext(turn.raw()),
    "turn's blocks": lambda _, turn: anext(aiter(turn.blocks())),
    "lines": lambda session, _: anext(session.raw()),
    "messages": lambda session, _: anext(session.messages()),
    "journal": lambda session, _: anext(session.journal()),
    "call": lambda session, _: session.call(GetContextUsage()),
    "set model": lambda session, _: session.set_model("opus"),
    "stop task": lambda session, _: session.stop_task("t"),
    "mcp": lambda session, _: session.mcp_status(),
    "rewind": lambda session, _: session.rewind(Checkpoint(session.id or "", UUID, 0)),
    "rewind files": lambda session, _: session.rewind_files(UUID),
    "start again": lambda session, _: session.start(),
    "enter again": lambda session, _: session.__aenter__(),
    "control": lambda session, _: session.control("get_context_usage"),
    "pause": lambda session, _: session.pause(),
    "resume": lambda session, _: session.resume(),
    "wait_idle": lambda session, _: session.wait_idle(5),
    "finish": lambda session, _: session.finish(),
    "cancel": lambda session, _: session.cancel(),
    "aclose": lambda session, _: session.aclose(),
}


async def used(use: Use, session: Session, turn: Turn) -> None:
    async with asyncio.timeout(5):
        await use(session, turn)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_in_another_event_loop_every_use_is_refused_at_once(use: Use) -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say("never")))

    async with opened(cli) as session:
        turn = await session.send("hi")
        await cli.wait_for_stall()
        with pytest.raises(UsageError, match="the event loop that started this session") as no:
            await asyncio.to_thread(asyncio.run, used(use, session, turn))
        assert "asyncio.run_coroutine_threadsafe(coroutine, loop)" in no.value.hint
        assert session.state == "running"
        # The session still belongs to its own loop.
        assert not await session.wait_idle(0.001)


async def test_a_session_can_be_closed_from_another_thread() -> None:
    async with opened(ScriptedCLI(Script())) as session:
        loop = asyncio.get_running_loop()

        def close() -> None:
            asyncio.run_coroutine_threadsafe(session.aclose(), loop).result(timeout=5)

        await asyncio.to_thread(close)

        assert session.state == "completed"


async def test_an_inbox_can_be_answered_in_another_event_loop() -> None:
    inbox = Inbox()
    cli = ScriptedCLI(Script(call("Bash", command="touch x"), say("fine")))

    async with opened(cli, inbox=inbox) as session:
        turn = await session.send("hi")
        async with asyncio.timeout(5):
            ask = (await anext(inbox.watch())).ask
            await asyncio.to_thread(asyncio.run, inbox.answer(ask, Deny("no")))
            result = await turn

    assert [each["tool_name"] for each in result.permission_denials] == ["Bash"]


async def test_a_session_that_is_forgotten_in_another_thread_is_closed_in_its_own() -> None:
    async with opened(ScriptedCLI(Script())) as session:
        await asyncio.to_thread(session.abandon)
        async with asyncio.timeout(5):
            assert await session.wait_idle(5)


def test_what_has_settled_can_be_read_anywhere() -> None:
    async def talk() -> tuple[Session, Turn]:
        async with Agent(transport=ScriptedCLI(Script(say("hello")))).session() as session:
            turn = await session.send("hi")
            await turn
        return session, turn

    async def read(session: Session, turn: Turn) -> str:
        await session.aclose()
        return "".join([chunk async for chunk in turn.text()]) + (await turn).text

    session, turn = asyncio.run(talk())

    assert asyncio.run(read(session, turn)) == "hellohello"


def test_without_an_event_loop_of_asyncio_nothing_is_started() -> None:
    session = Agent(transport=ScriptedCLI(Script())).session()

    with pytest.raises(UsageError, match=r"a running asyncio event loop(.|\n)*steersman\.sync"):
        session.start().send(None)


async def test_a_tool_that_awaits_a_turn_of_its_own_session_is_refused() -> None:
    refusals: list[str] = []

    @tool
    async def deadlock() -> str:
        """Wait for the turn that waits for this tool."""
        try:
            await turn
        except UsageError as error:
            refusals.append(str(error))
        return "done"

    cli = ScriptedCLI(Script(call("mcp__functions__deadlock"), say("fine")))

    async with opened(cli, functions=[deadlock]) as session:
        turn = await session.send("hi")
        async with asyncio.timeout(5):
            result = await turn

    assert result.text == "fine"
    assert ["return first" in each for each in refusals] == [True]


async def test_an_approver_that_waits_and_then_awaits_its_turn_denies() -> None:
    async def approve(*_: object) -> Allow:
        await asyncio.sleep(0)
        await turn
        return Allow()

    cli = ScriptedCLI(Script(call("Bash", command="touch x"), say("fine")))

    async with opened(cli, can_use_tool=approve) as session:
        turn = await session.send("hi")
        async with asyncio.timeout(5):
            result = await turn

    assert [each["tool_name"] for each in result.permission_denials] == ["Bash"]


async def test_a_tool_may_start_a_task_that_waits_for_the_turn() -> None:
    waiting: list[asyncio.Task[Any]] = []

    @tool
    async def later() -> str:
        """Start a task that outlives this call."""
        waiting.append(asyncio.get_running_loop().create_task(turn.result()))
        return "done"

    cli = ScriptedCLI(Script(call("mcp__functions__later"), say("fine")))

    async with opened(cli, functions=[later]) as session:
        turn = await session.send("hi")
        async with asyncio.timeout(5):
            await turn
            result = await waiting[0]

    assert result.text == "fine"
