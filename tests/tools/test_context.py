from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from steersman.ports import Caller
from steersman.tools import Toolbox, ToolContext, tool
from steersman.tools.context import call_in
from tests.tools.clients import Client, failure, text


async def test_a_context_knows_session_turn_and_deps() -> None:
    session, turn, deps = object(), object(), object()
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> None:
        seen.append(context)

    client = Client(look)
    client.caller.session, client.caller.deps = session, deps
    client.caller.turn = lambda: turn
    await client.call("look")

    assert [(each.session, each.turn, each.deps) for each in seen] == [(session, turn, deps)]


async def test_the_turn_of_a_call_stays_the_one_that_caused_it() -> None:
    turns = iter(["first", "second"])
    seen: list[Any] = []

    async def look(context: ToolContext) -> None:
        seen.extend([context.turn, context.turn])

    client = Client(look)
    client.caller.turn = lambda: next(turns)
    await client.call("look")

    assert seen == ["first", "first"]


async def test_a_deadline_is_known_where_there_is_one() -> None:
    seen: list[Any] = []

    @tool(timeout=60)
    def bounded(context: ToolContext) -> None:
        assert context.deadline is not None
        seen.append((context.remaining, context.deadline - time.monotonic()))

    def unbounded(context: ToolContext) -> None:
        seen.append((context.remaining, context.deadline))

    client = Client(bounded, unbounded)
    await client.call("bounded")
    await client.call("unbounded")

    assert seen[0] == (pytest.approx(60, abs=5), pytest.approx(60, abs=5))
    assert seen[1] == (None, None)


def test_no_time_is_left_after_the_deadline() -> None:
    assert ToolContext(tool_name="x", deadline=time.monotonic() - 1).remaining == 0.0


async def test_a_thread_learns_that_nobody_waits_any_more() -> None:
    started, learned = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def work(context: ToolContext) -> None:
        context.check_cancelled()
        started.set()
        learned_in_time = context.cancelled.wait(5)
        try:
            context.check_cancelled()
        except asyncio.CancelledError as error:
            raised.append(error)
        if learned_in_time:
            learned.set()

    call = asyncio.ensure_future(Client(work).call("work"))
    async with asyncio.timeout(5):
        await asyncio.to_thread(started.wait, 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(learned.wait, 5)

    assert learned.is_set()
    assert len(raised) == 1


def test_an_event_that_is_asked_for_after_the_cancellation_is_set() -> None:
    context = ToolContext(tool_name="x")
    before = context.cancelled.is_set()
    late = ToolContext(tool_name="x")

    context.cancel()
    late.cancel()

    assert (before, context.cancelled.is_set(), late.cancelled.is_set()) == (False, True, True)


async def test_the_time_of_a_tool_is_over_for_its_thread_too() -> None:
    learned = threading.Event()

    @tool(timeout=0.05)
    def work(context: ToolContext) -> None:
        if context.cancelled.wait(5):
            learned.set()

    result = await Client(work).call("work")

    assert result == failure("tool 'work' failed: timed out after 0.05 s")
    assert await asyncio.to_thread(learned.wait, 5)


async def test_long_calls_send_heartbeats_above_the_progress_that_the_tool_reported() -> None:
    enough = asyncio.Event()
    heard: list[dict[str, Any]] = []

    async def work(context: ToolContext) -> str:
        context.progress(4, 10)
        await enough.wait()
        return "done"

    def hear(message: Any) -> None:
        heard.append(message["params"])
        if len(heard) == 3:
            enough.set()

    client = Client(box=Toolbox("box", [work], heartbeat=0.02))
    client.caller = Caller("session-1", "key", hear)

    assert await client.call("work") == text("done")
    told, *beats = heard
    assert told == {"progressToken": 3, "progress": 4, "total": 10}
    assert [beat["message"] for beat in beats] == ["running for 0 s"] * 2
    assert 4 < beats[0]["progress"] < beats[1]["progress"] < 4.1


async def test_a_blocking_tool_gives_signs_of_life_too() -> None:
    beaten = threading.Event()

    def work() -> bool:
        return beaten.wait(5)

    client = Client(box=Toolbox("box", [work], heartbeat=0.02))
    client.caller = Caller("session-1", "key", lambda _: beaten.set())

    assert await client.call("work") == text("true")


async def test_no_signs_of_life_are_given_where_none_are_wanted() -> None:
    beaten = threading.Event()

    def wait_for_the_other() -> bool:
        return beaten.wait(5)

    silent = Client(box=Toolbox("box", [wait_for_the_other], heartbeat=None))
    lively = Client(box=Toolbox("box", [wait_for_the_other], heartbeat=0.02))
    lively.caller = Caller("session-1", "key", lambda _: beaten.set())

    results = await asyncio.gather(
        silent.call("wait_for_the_other"), lively.call("wait_for_the_other")
    )

    assert list(results) == [text("true"), text("true")]
    assert silent.notifications == []


async def test_a_call_into_the_running_loop_is_made_at_once() -> None:
    called: list[str] = []

    call_in(asyncio.get_running_loop(), called.append, "now")
    call_in(None, called.append, "here")

    assert called == ["now", "here"]


async def test_a_call_from_another_thread_is_made_in_the_loop() -> None:
    loop, called = asyncio.get_running_loop(), asyncio.Event()
    where: list[threading.Thread] = []

    def note() -> None:
        where.append(threading.current_thread())
        called.set()

    async with asyncio.timeout(5):
        await asyncio.to_thread(call_in, loop, note)
        await called.wait()

    assert where == [threading.main_thread()]


def test_a_call_into_a_closed_loop_is_none() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    called: list[str] = []

    call_in(loop, called.append, "never")

    assert called == []
