from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from steersman import Agent, Session
from steersman.errors import ChannelClosed, LaunchError, TurnError, TurnFailed, UsageError
from steersman.journal.calls import ToolCallRecord
from steersman.journal.snapshot import SessionSnapshot, StateChanged
from steersman.messages import Assistant
from steersman.permissions import Allow, Ask, PermissionContext
from steersman.testing.script import Script, call, fail, say, stall
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests._session.peers import opened

EVENTS = ("message", "tool_call", "tool_result", "state_change", "ask", "complete", "error")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def allow(_name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
    return Allow()


def listen(session: Session) -> dict[str, list[Any]]:
    """Everything that a session tells, by event."""
    heard: dict[str, list[Any]] = {name: [] for name in EVENTS}
    for name in EVENTS:
        session.on(name, heard[name].append)  # type: ignore[arg-type]
    return heard


async def test_each_event_brings_what_happened() -> None:
    cli = ScriptedCLI(
        Script(call("mcp__functions__add", a=2, b=3), call("Bash", command="touch x"), say("done"))
    )

    async with opened(cli, functions=[add], can_use_tool=allow) as session:
        heard = listen(session)
        result = await (await session.send("work"))

    calls: list[ToolCallRecord] = heard["tool_call"]
    results: list[ToolCallRecord] = heard["tool_result"]
    assert [(each.name, each.server, each.input) for each in calls] == [
        ("mcp__functions__add", "functions", {"a": 2, "b": 3}),
        ("Bash", None, {"command": "touch x"}),
    ]
    assert [each.tool_use_id for each in results] == [each.tool_use_id for each in calls]
    assert all(each.duration is not None and each.duration >= 0 for each in results)
    assert [type(each) for each in heard["ask"]] == [Ask]
    assert [each.tool_name for each in (ask.payload for ask in heard["ask"])] == ["Bash"]
    assert any(isinstance(each, Assistant) and each.text == "done" for each in heard["message"])
    assert heard["message"][-1] == result.result
    assert heard["error"] == []
    assert [type(each) for each in heard["complete"]] == [SessionSnapshot]


async def test_changes_of_state_are_told_in_order_with_a_snapshot_of_that_moment() -> None:
    cli = ScriptedCLI(Script(call("mcp__functions__add", a=2, b=3), say("done")))
    session = Agent(transport=cli, functions=[add]).session()
    changes: list[StateChanged] = []
    session.on("state_change", changes.append)

    async with asyncio.timeout(5), session:
        await (await session.send("work"))
        await session.idle(5)

    assert [(each.before, each.after) for each in changes] == [
        ("idle", "starting"),
        ("starting", "idle"),
        ("idle", "running"),
        ("running", "waiting_tool_call"),
        ("waiting_tool_call", "running"),
        ("running", "idle"),
        ("idle", "completed"),
    ]
    assert [each.snapshot.state for each in changes] == [each.after for each in changes]
    (pending,) = changes[3].snapshot.pending_tool_calls
    assert (pending.name, pending.is_ours) == ("mcp__functions__add", True)
    assert changes[-1].snapshot == session.snapshot()


async def test_complete_is_told_once_however_often_it_is_closed() -> None:
    session = Agent(transport=ScriptedCLI()).session()
    heard = listen(session)

    async with asyncio.timeout(5), session:
        await asyncio.gather(session.aclose(), session.aclose(), session.cancel())
    await session.aclose()

    assert [each.state for each in heard["complete"]] == ["completed"]


async def test_a_start_that_fails_is_an_error_and_complete() -> None:
    session = Agent(transport=ScriptedCLI(faults=Faults(exit_at="initialize"))).session()
    heard = listen(session)

    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is not the point here
        await asyncio.wait_for(session.start(), 5)

    assert heard["error"] == [caught.value]
    assert [each.state for each in heard["complete"]] == ["failed"]


async def test_a_turn_that_fails_is_an_error_and_the_session_goes_on() -> None:
    cli = ScriptedCLI(Script(fail(400), say("fine")))

    async with opened(cli) as session:
        heard = listen(session)
        failed = await (await session.send("one"))
        fine = await (await session.send("two"))

    assert (failed.outcome, fine.outcome) == ("failed", "completed")
    (error,) = heard["error"]
    assert type(error) is TurnFailed
    assert error.reason == failed.reason
    assert [each.state for each in heard["complete"]] == ["completed"]


async def test_listeners_may_be_async_and_hear_everything_in_order_before_the_end() -> None:
    heard: list[Any] = []

    async def slowly(message: Any) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        heard.append(message)

    async with opened(ScriptedCLI()) as session:
        session.on("message", slowly)
        turns = [await (await session.send(str(n))) for n in range(3)]

    assert [each for each in heard if each in [turn.result for turn in turns]] == [
        turn.result for turn in turns
    ]


async def test_a_listener_that_raises_is_logged_and_told_of_the_next_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Any] = []

    def awkward(message: Any) -> None:
        heard.append(message)
        raise RuntimeError("no")

    async def cancelled(message: Any) -> None:
        never = asyncio.get_running_loop().create_future()
        never.cancel()
        heard.append(message)
        await never

    with caplog.at_level(logging.ERROR, "steersman.session"):
        async with opened(ScriptedCLI()) as session:
            session.on("tool_call", awkward)
            session.on("message", awkward)
            session.on("message", cancelled)
            results = [await (await session.send(str(n))) for n in range(2)]

    assert [each.outcome for each in results] == ["completed", "completed"]
    assert [heard.count(each.result) for each in results] == [2, 2]
    assert "a listener for 'message' failed" in caplog.text


async def test_a_listener_that_never_comes_back_holds_up_nobody() -> None:
    cancelled: list[str] = []

    async def stuck(_message: Any) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append("at the end")
            raise

    async with opened(ScriptedCLI(), close_grace=0.1) as session:
        session.on("message", stuck)
        results = [await (await session.send(str(n))) for n in range(3)]

    assert [each.outcome for each in results] == ["completed"] * 3
    assert cancelled == ["at the end"]


async def test_who_leaves_hears_nothing_more_not_even_what_waits() -> None:
    heard: list[str] = []

    async with opened(ScriptedCLI()) as session:

        def once(_message: Any) -> None:
            heard.append("once")
            leave()

        def before(_message: Any) -> None:
            heard.append("never")

        leave = session.on("message", once)
        session.on("message", before)()
        await (await session.send("one"))
        await (await session.send("two"))
        leave()

    assert heard == ["once"]


async def test_a_listener_may_end_the_session() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli) as session:

        async def end(_message: Any) -> None:
            await session.cancel()

        session.on("message", end)
        turn = await session.send("talk")
        result = await turn
        await session.aclose()

    assert (result.outcome, session.state) == ("cancelled", "cancelled")


async def test_what_is_no_event_or_no_function_is_refused() -> None:
    session = Agent(transport=ScriptedCLI()).session()

    with pytest.raises(UsageError, match="tool_result"):
        session.on("toolCall", print)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="listener"):
        session.on("message", None)  # type: ignore[arg-type]


# Waiting for the end


async def test_wait_lets_everything_finish_takes_no_more_and_gives_the_last_snapshot() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" done"), say("two")))

    async with opened(cli) as session:
        turns = [await session.send(prompt) for prompt in ("one", "two")]
        await cli.wait_for_stall()
        waiting = asyncio.create_task(session.wait())
        await asyncio.sleep(0)
        with pytest.raises(ChannelClosed, match="no more prompts"):
            await session.send("three")
        await cli.release()
        last = await waiting
        results = [await turn for turn in turns]

    assert [each.text for each in results] == ["half done", "two"]
    assert (last.state, last.stats.turns) == ("completed", 2)
    assert last == session.snapshot()
    assert last.stats.completed is not None


async def test_a_wait_that_is_too_short_leaves_the_session_as_it_was() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" done"), say("two")))

    async with opened(cli) as session:
        turn = await session.send("one")
        await cli.wait_for_stall()
        with pytest.raises(TimeoutError):
            await session.wait(0.05)
        queued = await session.send("two")
        await cli.release()
        results = [await turn, await queued]

    assert [each.outcome for each in results] == ["completed", "completed"]


async def test_waiting_for_the_end_of_a_failed_session_tells_that_it_failed() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli, revive=False) as session:
        turn = await session.send("one")
        await cli.wait_for_stall()
        cli.exit(3)
        last = await session.wait(5)
        result = await turn

    assert (last.state, result.outcome) == ("failed", "failed")
    assert not isinstance(result.cause, (TurnError, LaunchError))


async def test_a_session_that_was_not_started_cannot_be_waited_for() -> None:
    with pytest.raises(ChannelClosed):
        await Agent(transport=ScriptedCLI()).session().wait()
