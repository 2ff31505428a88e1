"""However a session ends, nothing is left: no process, no task, no warning."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.errors import SteersmanError
from steersman.hooks import Hooks, SessionEnd
from steersman.permissions import Allow, PermissionContext
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests._session.peers import opened

MOST_STEPS = 400
"""A scenario has far fewer; this bounds the search."""
STRIDE = 3 if "STEERSMAN_QUICK" in os.environ else 1
"""`make quick` and `make mutate` try every third step."""


async def approve(_name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
    await asyncio.sleep(0)
    return Allow()


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


def busy() -> ScriptedCLI:
    return ScriptedCLI(
        Script(
            say("let me see", 3) + call("mcp__functions__add", a=1, b=2),
            call("Bash", command="touch x"),
            say("it is three", 3),
        )
    )


async def hold_a_session(cli: ScriptedCLI) -> None:
    async with Agent(transport=cli, functions=[add], can_use_tool=approve).session() as session:
        turn = await session.send("go")
        _ = [piece async for piece in turn.text()]
        await turn
        await session.set_model("opus")


async def send_and_interrupt(cli: ScriptedCLI) -> None:
    async with Agent(transport=cli, functions=[add], can_use_tool=approve).session() as session:
        turn, queued = await session.send("go"), await session.send("on")
        await turn.begun()
        await turn.interrupt(also_queued=True)
        await queued


async def ask_once(cli: ScriptedCLI) -> None:
    agent = Agent(transport=cli, functions=[add], can_use_tool=approve)
    async with agent.query("go") as messages:
        async for _ in messages:
            await asyncio.sleep(0)


async def run_once(cli: ScriptedCLI) -> None:
    await Agent(transport=cli, functions=[add], can_use_tool=approve).run("go")


async def leave_it_open(cli: ScriptedCLI) -> None:
    session = await Agent(transport=cli, functions=[add], can_use_tool=approve).start("go")
    try:
        async for _ in session.messages():
            await asyncio.sleep(0)
            if session.cost_usd:
                break
    finally:
        await session.aclose()


Scenario = Callable[[ScriptedCLI], Awaitable[None]]


@pytest.mark.parametrize(
    "scenario", [hold_a_session, send_and_interrupt, ask_once, run_once, leave_it_open]
)
async def test_cancelled_at_any_step_nothing_is_left(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    steps, completed = 0, False

    async with asyncio.timeout(60):
        while not completed:
            cli = busy()
            completed = await _cancelled_after(steps, scenario(cli))
            await _quiet(cli)
            steps += STRIDE
            assert steps < MOST_STEPS

    gc.collect()
    assert steps > 10
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("scenario", [hold_a_session, ask_once])
async def test_cancelled_twice_in_a_row_nothing_is_left_either(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    steps, completed = 0, False

    async with asyncio.timeout(60):
        while not completed:
            cli = busy()
            completed = await _cancelled_after(steps, scenario(cli), again=True)
            await _quiet(cli)
            steps += STRIDE
            assert steps < MOST_STEPS

    gc.collect()
    assert steps > 10
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "scenario", [hold_a_session, send_and_interrupt, ask_once, run_once, leave_it_open]
)
async def test_whenever_the_cli_dies_nobody_hangs_and_nothing_is_left(
    scenario: Scenario, caplog: pytest.LogCaptureFixture
) -> None:
    steps, completed = 0, False

    async with asyncio.timeout(60):
        while not completed:
            cli = busy()
            completed = await _dies_after(steps, cli, scenario(cli))
            await _quiet(cli)
            steps += STRIDE
            assert steps < MOST_STEPS

    gc.collect()
    assert steps > 10
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_leaving_the_block_with_an_error_closes_and_raises_it() -> None:
    cli = busy()

    async def stumble() -> None:
        async with opened(cli) as session:
            await session.send("go")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await stumble()

    await _quiet(cli)


async def test_a_query_that_was_never_read_starts_nothing() -> None:
    cli = busy()

    Agent(transport=cli).query("go")
    gc.collect()

    assert cli.launches == []


async def test_a_query_that_is_read_to_its_end_leaves_nothing() -> None:
    cli = ScriptedCLI(Script(say("done")))

    async with asyncio.timeout(5):
        messages = [message async for message in Agent(transport=cli).query("go")]

    assert messages[-1].raw["type"] == "result"
    assert cli.running == 0
    assert cli.exits == [0]


async def test_closing_with_no_patience_at_all_still_ends_the_cli() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))
    session = await Agent(transport=cli).start("go")
    await cli.wait_for_stall()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.aclose(), 0)

    await _quiet(cli)
    _ = [entry async for entry in session.journal()]
    assert session.state == "completed"


async def test_closing_may_be_done_any_number_of_times_and_at_once() -> None:
    cli = busy()
    session = await Agent(transport=cli).start("go")

    async with asyncio.timeout(5):
        await asyncio.gather(*(session.aclose() for _ in range(5)))
        await session.aclose()

    assert cli.running == 0


async def test_what_is_open_when_a_session_closes_is_cancelled_or_interrupted() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli) as session:
        running, waiting = await session.send("one"), await session.send("two")
        await cli.wait_for_stall()
    settled = [await running, await waiting]

    assert [each.outcome for each in settled] == ["interrupted", "cancelled"]
    assert settled[0].text == "half"


async def test_a_tool_that_closes_its_own_session_does_not_wait_for_itself() -> None:
    ended: list[str] = []

    async def leave() -> str:
        """Close the session."""
        try:
            await session.aclose()
            ended.append("closed")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "left"

    cli = ScriptedCLI(Script(call("mcp__functions__leave"), say("done")))
    async with asyncio.timeout(5):
        session = await Agent(transport=cli, functions=[leave], close_grace=0.05).start("go")
        async for _ in session.journal():
            pass

    await _quiet(cli)
    assert ended == ["cancelled"]
    assert (session.state, cli.running) == ("completed", 0)


async def test_a_cli_that_ignores_the_end_of_its_input_is_ended_after_the_grace() -> None:
    cli = ScriptedCLI(faults=Faults(mute_at="turn"))

    async with opened(cli, close_grace=0.02) as session:
        await session.send("go")
        begun = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - begun < 2
    await _quiet(cli)


def test_a_loop_that_shuts_down_closes_the_sessions_that_are_open() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async def forget_it() -> Any:
        session = await Agent(transport=cli).start("go")
        await cli.wait_for_stall()
        return session

    session = asyncio.run(forget_it())

    assert cli.running == 0
    assert session.phase.is_over


def test_a_loop_that_is_interrupted_closes_the_sessions_that_are_open() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async def break_off() -> None:
        async with Agent(transport=cli).session() as session:
            await session.send("go")
            await cli.wait_for_stall()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(break_off())

    assert cli.running == 0


async def _cancelled_after(steps: int, scenario: Awaitable[None], *, again: bool = False) -> bool:
    """Let the loop go round `steps` times, then cancel; tells whether it was done by then."""
    task = asyncio.ensure_future(scenario)
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    was_done = task.done()
    task.cancel()
    if again:
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait([task])
    assert was_done or task.cancelled() or task.exception() is None
    return was_done


async def _dies_after(steps: int, cli: ScriptedCLI, scenario: Awaitable[None]) -> bool:
    """Let the loop go round `steps` times, then end the CLI; tells whether it was done by then."""
    task = asyncio.ensure_future(scenario)
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    was_done = task.done()
    cli.exit(7, "the end")
    async with asyncio.timeout(5):
        await asyncio.wait([task])
    assert isinstance(task.exception(), SteersmanError | None)
    return was_done


async def _quiet(cli: ScriptedCLI) -> None:
    """Wait until nothing but the test itself runs."""
    async with asyncio.timeout(5):
        while cli.running or len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


def test_a_session_left_open_is_closed_once_when_its_loop_shuts_down() -> None:
    ended: list[str] = []

    async def leave_it_open() -> Any:
        session = Agent(transport=ScriptedCLI(), hooks=hooks).session()
        await session.start()
        return session

    hooks = Hooks()
    hooks.on(SessionEnd)(lambda event: ended.append(event.reason))
    with asyncio.Runner() as runner:
        session = runner.run(leave_it_open())

    assert session.state == "completed"
    assert len(ended) == 1
