from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.errors import ChannelClosed, RequestTimeout, TurnStopped
from steersman.messages import Assistant
from steersman.permissions import Allow, PermissionContext
from steersman.testing.script import Script, call, say, stall, when
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests._session.peers import FramePeer, opened


async def forever(_input: dict[str, Any]) -> str:
    await asyncio.get_running_loop().create_future()
    return "never"


async def test_an_interrupt_right_behind_the_prompt_stops_it() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli) as session:
        turn = await session.send("hi")
        receipt = await turn.interrupt()
        settled = await turn

    assert (receipt.still_queued, receipt.cancelled) == ([], [])
    assert settled.outcome == "interrupted"


async def test_an_interrupt_before_the_first_byte_stops_the_turn() -> None:
    cli = ScriptedCLI(Script(stall() + say("late")))

    async with opened(cli) as session:
        turn = await session.send("hi")
        await cli.wait_for_stall()
        await turn.interrupt()
        settled = await turn

    assert (settled.outcome, settled.text) == ("interrupted", "")
    assert settled.terminal_reason == "aborted_streaming"


async def test_an_interrupt_during_text_keeps_what_was_said() -> None:
    cli = ScriptedCLI(Script(say("half of it") + stall() + say("never said")))

    async with opened(cli) as session:
        turn = await session.send("hi")
        await cli.wait_for_stall()
        receipt = await session.interrupt()
        settled = await turn
        pieces = [piece async for piece in turn.text()]

    assert receipt.still_queued == []
    assert (settled.outcome, settled.text) == ("interrupted", "half of it")
    assert "".join(pieces) == "half of it"
    assert isinstance(settled.cause, TurnStopped)
    assert settled.cause.why == "interrupted"


async def test_an_interrupt_during_a_built_in_tool_stops_it() -> None:
    started = asyncio.Event()

    async def run(given: dict[str, Any]) -> str:
        started.set()
        return await forever(given)

    cli = ScriptedCLI(Script(call("Bash", command="sleep 9")), tools={"Bash": run})

    async with opened(cli) as session:
        turn = await session.send("hi")
        await started.wait()
        await turn.interrupt()
        settled = await turn

    assert (settled.outcome, settled.terminal_reason) == ("interrupted", "aborted_tools")


async def test_an_interrupt_cancels_the_python_tool_that_runs() -> None:
    started = asyncio.Event()
    cancelled = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        started.set()
        try:
            return await forever({})
        finally:
            cancelled.set()

    cli = ScriptedCLI(Script(call("mcp__functions__wait")))

    async with opened(cli, functions=[wait]) as session:
        turn = await session.send("hi")
        await started.wait()
        await turn.interrupt()
        await cancelled.wait()
        settled = await turn
        state = session.state

    assert settled.outcome == "interrupted"
    assert state != "waiting_tool_call"


async def test_an_interrupt_cancels_the_approver_that_is_asked() -> None:
    asked = asyncio.Event()
    cancelled = asyncio.Event()

    async def approve(_name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
        asked.set()
        try:
            await forever({})
        finally:
            cancelled.set()
        return Allow()

    cli = ScriptedCLI(Script(call("Bash", command="touch x")))

    async with opened(cli, can_use_tool=approve) as session:
        turn = await session.send("hi")
        await asked.wait()
        await turn.interrupt()
        await cancelled.wait()
        settled = await turn

    assert settled.outcome == "interrupted"


async def test_an_interrupt_after_the_end_leaves_the_turn_completed() -> None:
    async with opened(ScriptedCLI(Script(say("done")))) as session:
        turn = await session.send("hi")
        await turn
        receipts = [await session.interrupt(), await turn.interrupt()]
        settled = await turn

    assert [each.still_queued for each in receipts] == [[], []]
    assert settled.outcome == "completed"


async def test_the_next_turn_sees_no_frame_of_the_interrupted_one() -> None:
    cli = ScriptedCLI(Script(say("old words") + stall(), say("new words")))

    async with opened(cli) as session:
        first = await session.send("one")
        await cli.wait_for_stall()
        await first.interrupt()
        second = await session.send("two")
        seen = [message.text async for message in second if isinstance(message, Assistant)]
        raw = [line async for line in second.raw()]

    assert seen == ["new words"]
    assert not any(b"old words" in line or b"interrupted by user" in line for line in raw)


async def test_the_receipt_lists_what_still_waits_and_that_runs_next() -> None:
    cli = ScriptedCLI(Script(say("half") + stall(), say("second")))

    async with opened(cli) as session:
        first, second = await session.send("one"), await session.send("two")
        await cli.wait_for_stall()
        receipt = await session.interrupt()
        settled = [await first, await second]

    assert receipt.still_queued == [second.uuid]
    assert [each.outcome for each in settled] == ["interrupted", "completed"]


async def test_an_interrupt_may_take_the_queue_along() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli) as session:
        first, second = await session.send("one"), await session.send("two")
        await cli.wait_for_stall()
        receipt = await session.interrupt(also_queued=True)
        settled = [await first, await second]

    assert (receipt.still_queued, receipt.cancelled) == ([], [second.uuid])
    assert [each.outcome for each in settled] == ["interrupted", "cancelled"]


async def test_interrupting_a_turn_that_waits_does_not_stop_the_one_that_runs() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" and whole")))

    async with opened(cli) as session:
        first, second = await session.send("one"), await session.send("two")
        await cli.wait_for_stall()
        receipt = await second.interrupt()
        await cli.release()
        settled = [await first, await second]

    assert receipt.cancelled == [second.uuid]
    assert [each.outcome for each in settled] == ["completed", "interrupted"]
    assert settled[0].text == "half and whole"


async def test_two_may_interrupt_at_once() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli) as session:
        turn = await session.send("one")
        await cli.wait_for_stall()
        receipts = await asyncio.gather(turn.interrupt(), session.interrupt())
        settled = await turn

    assert [each.still_queued for each in receipts] == [[], []]
    assert settled.outcome == "interrupted"


async def test_an_interrupt_that_gets_no_answer_runs_out_of_time() -> None:
    faults = Faults(unanswered=frozenset({"interrupt"}))
    cli = ScriptedCLI(Script(say("half") + stall()), faults=faults)

    async with opened(cli, request_timeout=0.02, close_grace=0.01) as session:
        await session.send("one")
        await cli.wait_for_stall()
        with pytest.raises(RequestTimeout, match="interrupt"):
            await session.interrupt()


async def test_cancelling_who_waits_for_a_turn_does_not_settle_it() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" more")))

    async with opened(cli) as session:
        turn = await session.send("one")
        waiting = asyncio.ensure_future(turn.result())
        await cli.wait_for_stall()
        waiting.cancel()
        await asyncio.wait([waiting])
        await cli.release()
        settled = await turn

    assert settled.text == "half more"


async def test_a_closed_session_cannot_be_interrupted() -> None:
    async with opened(FramePeer().transport) as session:
        pass

    with pytest.raises(ChannelClosed, match="closed"):
        await session.interrupt()


@pytest.mark.parametrize("rounds", range(12))
async def test_an_interrupt_never_stops_the_turn_behind_the_one_that_is_meant(rounds: int) -> None:
    """Wherever the first turn stands when the interrupt comes."""
    scenes = (when("one", say("a") + stall()), when("two", say("b") + stall() + say("c")))
    cli = ScriptedCLI(Script(*scenes))

    async with opened(cli) as session:
        first, second = await session.send("one"), await session.send("two")
        for _ in range(rounds):
            await asyncio.sleep(0)
        receipt = await first.interrupt()
        await cli.release()
        settled = [await first, await second]

    assert receipt.still_queued == [second.uuid]
    assert [each.outcome for each in settled] == ["interrupted", "completed"]
    assert settled[1].text == "bc"
