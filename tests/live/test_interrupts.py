"""An interrupt stops one turn, at any moment of its life, and nothing of it is left in the next."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Session, Turn, tool
from steersman.control import InterruptReceipt
from steersman.errors import TurnStopped
from steersman.messages import Init, Result
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, collect, first_words, texts_of, until

pytestmark = pytest.mark.live

NEXT = when("next", say("fresh"))


async def assert_next_turn_is_fresh(session: Session, stopped: Turn) -> None:
    """The next turn completes and sees nothing of the one before."""
    result_of_old = await stopped
    turn = await session.send("next")
    result = await turn
    messages = await collect(turn.messages())

    assert (result.outcome, result.text) == ("completed", "fresh")
    assert texts_of(messages) == ["fresh"]
    assert isinstance(messages[0], Init)
    assert [type(each) for each in messages].count(Result) == 1
    assert result.result is not None
    assert result.result.user_message_uuids == [turn.uuid]
    assert result.result != result_of_old.result


async def test_interrupted_right_after_it_was_sent(scripted: MakeScripted) -> None:
    agent, _model = scripted(when("stop me", say("never heard") + stall()), NEXT)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        receipt = await turn.interrupt()
        result = await turn
        await assert_next_turn_is_fresh(session, turn)

    assert receipt == InterruptReceipt()
    assert result.outcome == "interrupted"
    assert isinstance(result.cause, TurnStopped)


async def test_interrupted_before_a_slow_server_lets_the_first_turn_begin(
    scripted: MakeScripted,
) -> None:
    """`system/init` waits for servers, up to half a minute; an interrupt does not."""
    silent = {"command": "sleep", "args": ["60"]}
    agent, model = scripted(
        when("stop me", say("never heard")),
        NEXT,
        mcp_servers={"silent": silent},
        # A CLI that still waits for a server does not end with its input.
        close_grace=0.2,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        async with asyncio.timeout(5):
            await turn.interrupt()
        result = await turn
        asked = model.asked

    assert result.outcome == "interrupted"
    assert asked == []


async def test_interrupted_while_text_streams(scripted: MakeScripted) -> None:
    agent, _model = scripted(when("stop me", say("half a") + stall() + say(" thought")), NEXT)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        await first_words(turn, "half a")
        receipt = await session.interrupt()
        result = await turn
        again = await turn.interrupt()
        await assert_next_turn_is_fresh(session, turn)

    assert receipt == again == InterruptReceipt()
    assert (result.outcome, result.text) == ("interrupted", "half a")
    assert result.terminal_reason == "aborted_streaming"
    assert isinstance(result.cause, TurnStopped)


async def test_interrupted_while_bash_runs(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    started, effect = sandbox.project / "started", sandbox.project / "effect"
    command = f"touch {started}; sleep 30; touch {effect}"
    agent, model = scripted(
        when("stop me", say("wait") + call("Bash", command=command), say("too late")),
        NEXT,
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        await until(started.exists)
        receipt = await turn.interrupt()
        result = await turn
        await assert_next_turn_is_fresh(session, turn)

    assert receipt == InterruptReceipt()
    assert (result.outcome, result.text) == ("interrupted", "wait")
    assert not effect.exists()
    assert len(model.asked) == 2


async def test_interrupted_while_a_python_tool_runs(scripted: MakeScripted) -> None:
    running, fate = asyncio.Event(), list[str]()

    @tool
    async def dawdle() -> str:
        """Take very long."""
        running.set()
        try:
            await asyncio.sleep(LIMIT)
        except asyncio.CancelledError:
            fate.append("cancelled")
            raise
        return "done"

    agent, _model = scripted(
        when("stop me", call("mcp__functions__dawdle"), say("too late")), NEXT, functions=[dawdle]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        await running.wait()
        state = session.state
        receipt = await turn.interrupt()
        result = await turn
        await until(lambda: bool(fate))
        await assert_next_turn_is_fresh(session, turn)

    assert state == "waiting_tool_call"
    assert receipt == InterruptReceipt()
    assert (result.outcome, result.text) == ("interrupted", "")
    assert fate == ["cancelled"]


async def test_an_interrupt_after_the_end_changes_nothing(scripted: MakeScripted) -> None:
    agent, _model = scripted(when("all of it", say("whole")), NEXT)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("all of it")
        before = await turn
        receipts = [await turn.interrupt(), await session.interrupt()]
        after = await turn
        await assert_next_turn_is_fresh(session, turn)

    assert receipts == [InterruptReceipt()] * 2
    assert (before.outcome, before.text) == ("completed", "whole")
    assert after == before


@pytest.mark.parametrize("when_", ["at once", "in the text"])
async def test_queued_prompts_stay_queued_unless_they_are_meant_too(
    scripted: MakeScripted, when_: str
) -> None:
    slow: Step = say("slow") + stall()
    agent, model = scripted(
        when("stop me", slow),
        when("one more", say("one")),
        when("two more", say("two")),
        when("stop all", slow),
        NEXT,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("stop me")
        waiting = [await session.send(prompt) for prompt in ("one more", "two more")]
        if when_ == "in the text":
            await first_words(first, "slow")
        listed = await session.interrupt()
        stopped = await first
        answered = [await turn for turn in waiting]

        second = await session.send("stop all")
        doomed = [await session.send(prompt) for prompt in ("never", "nor this")]
        if when_ == "in the text":
            await first_words(second, "slow")
        taken = await session.interrupt(also_queued=True)
        fates = [await turn for turn in (second, *doomed)]
        await assert_next_turn_is_fresh(session, second)

    assert listed == InterruptReceipt(still_queued=[turn.uuid for turn in waiting])
    assert stopped.outcome == "interrupted"
    assert [(each.outcome, each.text) for each in answered] == [
        ("completed", "one"),
        ("completed", "two"),
    ]
    assert taken == InterruptReceipt(cancelled=[turn.uuid for turn in doomed])
    assert [each.outcome for each in fates] == ["interrupted", "cancelled", "cancelled"]
    assert not any("never" in request.last_text for request in model.asked)


async def test_a_queued_prompt_can_be_taken_back_alone(scripted: MakeScripted) -> None:
    agent, model = scripted(
        when("going on", say("slow") + stall() + say(" but whole")),
        when("stays", say("answered")),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("going on")
        unwanted = await session.send("unwanted")
        stays = await session.send("stays")
        await first_words(first, "slow")
        await unwanted.interrupt()
        model.release()
        results = [await turn for turn in (first, unwanted, stays)]

    assert [each.outcome for each in results] == ["completed", "interrupted", "completed"]
    assert [each.text for each in results] == ["slow but whole", "", "answered"]


async def test_interrupts_at_the_same_time_stop_one_turn_and_not_the_next(
    scripted: MakeScripted,
) -> None:
    rounds = 8
    agent, _model = scripted(
        *(when(f"stop {n}.", say("half") + stall()) for n in range(rounds)),
        *(when(f"queued {n}.", say(f"answer {n}")) for n in range(rounds)),
    )
    outcomes: list[tuple[str, str, str]] = []

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for n in range(rounds):
            turn = await session.send(f"stop {n}.")
            queued = await session.send(f"queued {n}.")
            if n % 2:
                await first_words(turn, "half")
            await asyncio.gather(turn.interrupt(), session.interrupt(), turn.interrupt())
            after = await queued
            outcomes.append(((await turn).outcome, after.outcome, after.text))

    assert outcomes == [("interrupted", "completed", f"answer {n}") for n in range(rounds)]
