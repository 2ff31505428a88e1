"""Prompts that reach a turn under way: queued, folded in, cutting in, or taken back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman._session.turn import When
from steersman.testing.older_cli import find_older_cli
from steersman.testing.plugin import MakeAgent
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script, Step, call, say, stall
from tests.live.staging import LIMIT, MakeScripted, collect, first_words, until
from tests.live.test_harness import stock_cli

pytestmark = pytest.mark.live

HOLD = "touch running; while [ ! -e go ]; do sleep 0.05; done"
"""A tool that runs until it is let go."""


def answers() -> list[Step]:
    """One for each request after the tool's; a prompt of its own takes one more."""
    return [call("Bash", command=HOLD), say("One."), say("Two.")]


@pytest.mark.parametrize("find", [find_stock_cli, find_older_cli])
async def test_every_cli_tells_of_the_first_prompt_before_its_first_result(
    find: Callable[[], Path], scripted: MakeScripted
) -> None:
    """So none is taken for a stand-in, whose results settle the oldest prompt."""
    agent, _model = scripted(say("one"), cli_path=stock_cli(find))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("hi")
        await turn
    lines = [json.loads(line) async for line in session.raw()]

    results = [at for at, line in enumerate(lines) if line["type"] == "result"]
    told = [line.get("command_uuid") or line.get("uuid") for line in lines[: results[0]]]
    assert turn.uuid in told


def let_go(project: Path) -> None:
    """Let the tool end."""
    (project / "go").touch()


# --- While a tool runs -----------------------------------------------------------------


async def test_later_waits_for_a_turn_of_its_own(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(*answers(), allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await until((sandbox.project / "running").exists)
        second = await session.send("second")
        waiting = (first.delivery, second.delivery)
        let_go(sandbox.project)
        results = await first, await second

    assert waiting == ("started", "queued")
    assert [each.text for each in results] == ["One.", "Two."]
    assert [first.delivery, second.delivery] == ["completed", "completed"]
    assert [each.last_text for each in model.asked] == ["first", "first", "second"]


async def test_next_is_folded_into_the_turn_and_settles_with_it(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(*answers()[:2], allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await until((sandbox.project / "running").exists)
        second = await session.send("second", when="next")
        waiting = second.delivery
        let_go(sandbox.project)
        results = await first, await second
        pieces = "".join(await collect(second.text()))

    assert waiting == "queued"
    assert [first.delivery, second.delivery] == ["completed", "folded"]
    assert [each.text for each in results] == ["One.", "One."]
    assert pieces == "One."
    assert [each.cost_usd > 0 for each in results] == [True, False]
    assert results[0].result == results[1].result
    assert "second" in str(model.asked[-1].body["messages"])
    model.script.assert_complete()


async def test_now_ends_the_turn_after_its_tool_and_runs(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(*answers()[:2], allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await until((sandbox.project / "running").exists)
        second = await session.send("second", when="now")
        let_go(sandbox.project)
        cut, done = await first, await second

    assert (cut.outcome, cut.text) == ("interrupted", "")
    assert (done.outcome, done.text) == ("completed", "One.")
    assert [each.last_text for each in model.asked] == ["first", "second"]
    model.script.assert_complete()


# --- While the model writes ------------------------------------------------------------


async def test_later_does_not_disturb_the_text(scripted: MakeScripted) -> None:
    agent, model = scripted(say("Half, ") + stall() + say("and all."), say("Two."))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await first_words(first, "Half")
        second = await session.send("second")
        await asyncio.to_thread(model.release)
        results = await first, await second

    assert [each.text for each in results] == ["Half, and all.", "Two."]


async def test_next_comes_after_a_text_that_has_no_tool(scripted: MakeScripted) -> None:
    agent, model = scripted(say("Half, ") + stall() + say("and all."), say("Two."))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await first_words(first, "Half")
        second = await session.send("second", when="next")
        await asyncio.to_thread(model.release)
        results = await first, await second

    assert [each.outcome for each in results] == ["completed", "completed"]
    assert [each.text for each in results] == ["Half, and all.", "Two."]
    assert [first.delivery, second.delivery] == ["completed", "completed"]


async def test_now_cuts_the_text_off(scripted: MakeScripted) -> None:
    agent, _model = scripted(Script(say("Half, ") + stall() + say("never."), say("Two.")))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await first_words(first, "Half")
        second = await session.send("second", when="now")
        cut, done = await first, await second

    assert (cut.outcome, cut.text) == ("interrupted", "Half, ")
    assert (done.outcome, done.text) == ("completed", "Two.")


@pytest.mark.parametrize("how", ["next", "now"])
async def test_with_nothing_under_way_it_is_simply_the_next_one(
    scripted: MakeScripted, how: When
) -> None:
    agent, _model = scripted(say("One."), say("Two."))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await (await session.send("first", when=how))
        second = await (await session.send("second", when=how))

    assert [first.text, second.text] == ["One.", "Two."]
    assert [first.outcome, second.outcome] == ["completed", "completed"]


# --- Taking back -----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["later", "next"])
async def test_a_prompt_that_waits_can_be_withdrawn_from_our_queue_and_the_clis(
    scripted: MakeScripted, sandbox: CliSandbox, how: When
) -> None:
    agent, model = scripted(*answers()[:2], allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await until((sandbox.project / "running").exists)
        second = await session.send("second", when=how)
        withdrew = await second.withdraw(), await second.withdraw()
        let_go(sandbox.project)
        done, gone = await first, await second

    assert withdrew == (True, True)
    assert (gone.outcome, second.delivery) == ("cancelled", "cancelled")
    assert (done.outcome, done.text) == ("completed", "One.")
    assert "second" not in str([each.body["messages"] for each in model.asked])
    model.script.assert_complete()


async def test_a_prompt_that_the_model_has_seen_cannot_be_withdrawn(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("Half, ") + stall() + say("and all."))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("first")
        await first_words(turn, "Half")
        during = await turn.withdraw()
        await asyncio.to_thread(model.release)
        done = await turn
        after = await turn.withdraw()

    assert (during, after) == (False, False)
    assert (done.outcome, done.text) == ("completed", "Half, and all.")


async def test_ten_sends_with_one_key_are_one_turn(scripted: MakeScripted) -> None:
    agent, model = scripted(say("One."))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("pay", key="invoice 7") for _ in range(5)]
        results = await asyncio.gather(*turns)
        turns += [await session.send("pay", key="invoice 7") for _ in range(5)]

    assert len({id(turn) for turn in turns}) == 1
    assert {each.text for each in results} == {"One."}
    assert len(model.asked) == 1


# --- Every CLI -------------------------------------------------------------------------


async def test_what_is_folded_settles_both_on_every_cli(live_cli: MakeAgent) -> None:
    """Older ones name nobody in a result: what was replayed since the last one is meant."""
    agent = live_cli(*answers()[:2], allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("first")
        await until((agent.stage.project / "running").exists)
        second = await session.send("second", when="next")
        let_go(agent.stage.project)
        results = await first, await second

    assert [each.outcome for each in results] == ["completed", "completed"]
    assert results[0].text == "One."
