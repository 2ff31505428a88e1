from __future__ import annotations

import asyncio
import logging
from dataclasses import fields
from typing import Any

import pytest

from steersman import Agent, Session
from steersman.errors import ApiFailed, ChannelClosed, LaunchError, TurnError, UsageError
from steersman.journal.calls import ToolCallRecord
from steersman.journal.snapshot import SessionEnded, SessionSnapshot, StateChanged
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


def record_events(session: Session) -> dict[str, list[Any]]:
    """Record the values of all events, by event."""
    received: dict[str, list[Any]] = {name: [] for name in EVENTS}
    for name in EVENTS:
        session.on(name, received[name].append)  # type: ignore[call-overload]
    return received


async def test_each_event_has_its_value() -> None:
    cli = ScriptedCLI(
        Script(call("mcp__functions__add", a=2, b=3), call("Bash", command="touch x"), say("done"))
    )

    async with opened(cli, functions=[add], can_use_tool=allow) as session:
        received = record_events(session)
        result = await (await session.send("work"))

    calls: list[ToolCallRecord] = received["tool_call"]
    results: list[ToolCallRecord] = received["tool_result"]
    assert [(each.name, each.server, each.input) for each in calls] == [
        ("mcp__functions__add", "functions", {"a": 2, "b": 3}),
        ("Bash", None, {"command": "touch x"}),
    ]
    assert [each.tool_use_id for each in results] == [each.tool_use_id for each in calls]
    assert all(each.duration is not None and each.duration >= 0 for each in results)
    assert [type(each) for each in received["ask"]] == [Ask]
    assert [each.tool_name for each in (ask.payload for ask in received["ask"])] == ["Bash"]
    assert any(isinstance(each, Assistant) and each.text == "done" for each in received["message"])
    assert received["message"][-1] == result.result
    assert received["error"] == []
    assert [type(each) for each in received["complete"]] == [SessionEnded]


async def test_state_changes_are_reported_in_order_with_a_snapshot_of_that_moment() -> None:
    cli = ScriptedCLI(Script(call("mcp__functions__add", a=2, b=3), say("done")))
    session = Agent(transport=cli, functions=[add]).session()
    changes: list[StateChanged] = []
    session.on("state_change", changes.append)

    async with asyncio.timeout(5), session:
        await (await session.send("work"))
        await session.wait_idle(5)

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


async def test_complete_is_reported_once_however_often_the_session_is_closed() -> None:
    session = Agent(transport=ScriptedCLI()).session()
    received = record_events(session)

    async with asyncio.timeout(5), session:
        await asyncio.gather(session.aclose(), session.aclose(), session.cancel())
    await session.aclose()

    assert [each.state for each in received["complete"]] == ["completed"]


async def test_complete_has_the_result_of_the_last_turn_beside_the_last_snapshot() -> None:
    received: list[SessionEnded] = []
    async with opened(ScriptedCLI()) as session:
        session.on("complete", received.append)
        _ = await session.run("one")
        last = await session.run("two")

    assert [each.result for each in received] == [last]
    shared = [each.name for each in fields(SessionSnapshot)]
    snapshot = session.snapshot()
    assert [getattr(received[0], each) for each in shared] == [
        getattr(snapshot, each) for each in shared
    ]


async def test_complete_of_a_session_without_a_turn_has_no_result() -> None:
    received: list[SessionEnded] = []
    async with opened(ScriptedCLI()) as session:
        session.on("complete", received.append)

    assert [each.result for each in received] == [None]


async def test_a_start_that_fails_is_an_error_and_complete() -> None:
    session = Agent(transport=ScriptedCLI(faults=Faults(exit_at="initialize"))).session()
    received = record_events(session)

    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is not the point here
        await asyncio.wait_for(session.start(), 5)

    assert received["error"] == [caught.value]
    assert [each.state for each in received["complete"]] == ["failed"]


async def test_a_turn_that_fails_is_an_error_and_the_session_continues() -> None:
    cli = ScriptedCLI(Script(fail(400), say("fine")))

    async with opened(cli) as session:
        received = record_events(session)
        failed = await (await session.send("one"))
        fine = await (await session.send("two"))

    assert (failed.outcome, fine.outcome) == ("failed", "completed")
    (error,) = received["error"]
    assert type(error) is ApiFailed
    assert error is failed.cause
    assert [each.state for each in received["complete"]] == ["completed"]


async def test_listeners_may_be_async_and_get_every_event_in_order_before_the_end() -> None:
    received: list[Any] = []

    async def slowly(message: Any) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        received.append(message)

    async with opened(ScriptedCLI()) as session:
        session.on("message", slowly)
        turns = [await (await session.send(str(n))) for n in range(3)]

    assert [each for each in received if each in [turn.result for turn in turns]] == [
        turn.result for turn in turns
    ]


async def test_a_listener_that_raises_is_logged_and_gets_the_next_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    received: list[Any] = []

    def awkward(message: Any) -> None:
        received.append(message)
        raise RuntimeError("no")

    async def cancelled(message: Any) -> None:
        never = asyncio.get_running_loop().create_future()
        never.cancel()
        received.append(message)
        await never

    with caplog.at_level(logging.ERROR, "steersman.session"):
        async with opened(ScriptedCLI()) as session:
            session.on("tool_call", awkward)
            session.on("message", awkward)
            session.on("message", cancelled)
            results = [await (await session.send(str(n))) for n in range(2)]

    assert [each.outcome for each in results] == ["completed", "completed"]
    assert [received.count(each.result) for each in results] == [2, 2]
    assert "a listener for 'message' failed" in caplog.text


async def test_a_listener_that_never_returns_delays_nothing() -> None:
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


async def test_a_removed_listener_gets_no_more_events_not_even_queued_ones() -> None:
    received: list[str] = []

    async with opened(ScriptedCLI()) as session:

        def once(_message: Any) -> None:
            received.append("once")
            remove()

        def before(_message: Any) -> None:
            received.append("never")

        remove = session.on("message", once)
        session.on("message", before)()
        await (await session.send("one"))
        await (await session.send("two"))
        remove()

    assert received == ["once"]


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


async def test_an_unknown_event_and_a_listener_that_is_not_callable_are_refused() -> None:
    session = Agent(transport=ScriptedCLI()).session()

    with pytest.raises(UsageError, match="tool_result"):
        session.on("toolCall", print)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="listener"):
        session.on("message", "print")  # type: ignore[call-overload]


# Waiting for the end


async def test_wait_lets_everything_finish_takes_no_more_and_gives_the_last_snapshot() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" done"), say("two")))

    async with opened(cli) as session:
        turns = [await session.send(prompt) for prompt in ("one", "two")]
        await cli.wait_for_stall()
        waiting = asyncio.create_task(session.finish())
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
            await session.finish(0.05)
        queued = await session.send("two")
        await cli.release()
        results = [await turn, await queued]

    assert [each.outcome for each in results] == ["completed", "completed"]


async def test_waiting_for_the_end_of_a_failed_session_returns_its_state() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli, revive=False) as session:
        turn = await session.send("one")
        await cli.wait_for_stall()
        cli.exit(3)
        last = await session.finish(5)
        result = await turn

    assert (last.state, result.outcome) == ("failed", "failed")
    assert not isinstance(result.cause, (TurnError, LaunchError))


async def test_a_session_that_was_not_started_cannot_be_waited_for() -> None:
    with pytest.raises(ChannelClosed):
        await Agent(transport=ScriptedCLI()).session().finish()


async def test_a_listener_can_be_registered_by_a_decorator() -> None:
    received: list[SessionEnded] = []
    session = Agent(transport=ScriptedCLI(Script(say("hi")))).session()

    @session.on("complete")
    def last(snapshot: SessionEnded) -> None:
        received.append(snapshot)

    async with session:
        await (await session.send("hello"))

    last(received[0])
    assert [each.state for each in received] == ["completed"] * 2


def test_a_decorator_for_an_unknown_event_is_refused_at_once() -> None:
    session = Agent(transport=ScriptedCLI(Script())).session()

    with pytest.raises(UsageError, match="event: got 'asks'"):
        session.on("asks")  # type: ignore[call-overload]
