"""Our own SDK on an older CLI: what it lacks is done without, and nothing hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steersman import Allow, tool
from steersman.control import InterruptReceipt
from steersman.errors import TurnStopped
from steersman.messages import Result
from steersman.permissions import Decision, PermissionContext
from steersman.testing.older_cli import OLDER_VERSION, find_older_cli
from steersman.testing.script import call, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, collect, first_words, until
from tests.live.test_harness import stock_cli

pytestmark = [pytest.mark.live, pytest.mark.ci_only]


@pytest.fixture(scope="session")
def cli() -> Path:
    """The older CLI, in the place of the stock one."""
    return stock_cli(find_older_cli)


async def test_three_prompts_at_once_settle_as_three_turns(scripted: MakeScripted) -> None:
    agent, model = scripted(
        when("first", call("Bash", command="echo one"), say("un")),
        when("second", say("deux")),
        when("third", say("trois", chunks=3)),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send(prompt) for prompt in ("first", "second", "third")]
        results = await asyncio.gather(*turns)
        messages = [await collect(turn.messages()) for turn in turns]

    assert [(each.outcome, each.text) for each in results] == [
        ("completed", "un"),
        ("completed", "deux"),
        ("completed", "trois"),
    ]
    assert [[type(each) for each in turn].count(Result) for turn in messages] == [1, 1, 1]
    assert [each.result and each.result.user_message_uuids for each in results] == [[]] * 3
    model.script.assert_complete()


async def test_text_streams(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("a b c", chunks=["a ", "b ", "c"]))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("spell")
        chunks = await collect(turn.text())

    assert chunks == ["a ", "b ", "c"]


async def test_a_python_tool_and_a_permission(scripted: MakeScripted) -> None:
    asked: list[str] = []

    @tool
    def add(a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    def decide(name: str, _input: dict[str, Any], _context: PermissionContext) -> Decision:
        asked.append(name)
        return Allow()

    agent, model = scripted(
        call("mcp__functions__add", a=1, b=2),
        call("Bash", command="touch made", description="make it"),
        say("both done"),
        functions=[add],
        can_use_tool=decide,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))

    assert (result.outcome, result.answer) == ("completed", "both done")
    assert asked == ["Bash"]
    assert list(model.asked[1].tool_results.values()) == ["3.0"]
    assert result.permission_denials == []


@pytest.mark.parametrize("moment", ["at once", "in the text"])
async def test_an_interrupt_has_an_empty_receipt_and_stops_the_turn(
    scripted: MakeScripted, moment: str
) -> None:
    agent, _model = scripted(
        when("stop me", say("half") + stall()), when("next", say("fresh")), when("last", say("end"))
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        if moment == "in the text":
            await first_words(turn, "half")
        receipt = await turn.interrupt()
        stopped = await turn
        fresh = await (await session.send("next"))
        idle = await session.interrupt()
        last = await (await session.send("last"))

    assert receipt == idle == InterruptReceipt()
    assert stopped.outcome == "interrupted"
    assert isinstance(stopped.cause, TurnStopped)
    assert [(each.outcome, each.text) for each in (fresh, last)] == [
        ("completed", "fresh"),
        ("completed", "end"),
    ]


async def test_queued_prompts_are_ours_to_keep_or_to_take_back(scripted: MakeScripted) -> None:
    agent, model = scripted(when("stop me", say("slow") + stall()), when("kept", say("answered")))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("stop me")
        doomed = await session.send("doomed")
        kept = await session.send("kept")
        await first_words(first, "slow")
        await doomed.interrupt()
        receipt = await session.interrupt()
        results = [await turn for turn in (first, doomed, kept)]

    assert [each.outcome for each in results] == ["interrupted", "interrupted", "completed"]
    assert receipt == InterruptReceipt(still_queued=[kept.uuid])
    assert not any("doomed" in request.last_text for request in model.asked)


async def test_the_version_and_states_are_told_and_the_end_is_clean(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("done"))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            result = await (await session.send("go"))
            await until(lambda: session.state == "idle")
            version = session.initialized.claude_code_version
        state = session.state

    assert result.outcome == "completed"
    assert (version, state) == (OLDER_VERSION, "completed")
