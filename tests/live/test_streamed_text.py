"""What `turn.text()` gives, joined, is the text of the result: whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from steersman.testing.script import Answer, call, calls, cut, fail, say, stall, think
from tests.live.staging import LIMIT, MakeScripted, collect, first_words

pytestmark = pytest.mark.live

BASH = call("Bash", command="echo between")
TASK = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}

CASES: Mapping[str, tuple[str, tuple[Answer, ...]]] = {
    "plain": ("Hello there", (say("Hello there", chunks=4),)),
    "one piece": ("Hello", (say("Hello"),)),
    "not only ascii": ("Grüße 🚢\n\u2028done", (say("Grüße 🚢\n\u2028done", chunks=5),)),
    "tools between messages": (
        "I look.\n\nI look again.\n\nFound it.",
        (say("I look.", chunks=2) + BASH, say("I look again.") + BASH, say("Found it.", chunks=3)),
    ),
    "a tool without words": ("Found it.", (BASH, say("Found it."))),
    "two texts in one message": (
        "Before and after.\n\nDone.",
        (say("Before ") + think("hm") + say("and after.") + BASH, say("Done.")),
    ),
    "several tools at once": (
        "Both.\n\nDone.",
        (say("Both.") + calls(BASH, BASH), say("Done.")),
    ),
    "thinking and text": ("So it is.", (think("is it?") + say("So it is.", chunks=2),)),
    "the same words twice": ("Again.\n\nAgain.", (say("Again.") + BASH, say("Again."))),
    "words that begin like the last ones": ("A\n\nAB", (say("A") + BASH, say("AB"))),
    "an api error, retried": ("Whole.", (fail(529, retry_after=0), say("Whole.", chunks=2))),
    "a cut before the first word": ("Whole.", (cut(), say("Whole."))),
}


@pytest.fixture
def options() -> dict[str, object]:
    return {"allowed_tools": ["Bash"], "env": {"CLAUDE_CODE_MAX_RETRIES": "3"}}


async def test_text_joined_is_the_text_of_the_result(
    scripted: MakeScripted, options: dict[str, object]
) -> None:
    steps = [step for _, case in CASES.values() for step in case]
    agent, model = scripted(*steps, **options)  # type: ignore[arg-type]
    told: dict[str, str] = {}
    texts: dict[str, str] = {}

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for name in CASES:
            turn = await session.send(name)
            told[name] = "".join(await collect(turn.text()))
            texts[name] = (await turn).text
            assert "".join(await collect(turn.text())) == told[name]

    assert told == texts
    assert texts == {name: text for name, (text, _) in CASES.items()}
    model.script.assert_complete()


CUTS: Mapping[str, tuple[tuple[str, ...], tuple[Answer, ...]]] = {
    "a stream that is cut and goes on alike": (
        ("Half of it", "Half of it all."),
        (say("Half of it") + cut(), say("Half of it all.", chunks=3)),
    ),
    "a stream that is cut and says the same": (("Same.",), (say("Same.") + cut(), say("Same."))),
    "a stream that is cut and says less": (
        ("Half of it", "Half"),
        (say("Half of it") + cut(), say("Half")),
    ),
    "a stream that is cut and says another thing": (
        ("Half of it", "Another thing."),
        (say("Half of it") + cut(), say("Another thing.", chunks=2)),
    ),
    "an error in the stream": (
        ("Half of it", "Whole."),
        (say("Half of it") + fail(529), say("Whole.")),
    ),
    "a cut after a tool": (
        ("I look.", "Half", "Whole."),
        (say("I look.") + BASH, say("Half") + cut(), say("Whole.")),
    ),
}


async def test_text_that_was_cut_off_is_told_as_the_result_tells_it(
    scripted: MakeScripted, options: dict[str, object]
) -> None:
    steps = [step for _, case in CUTS.values() for step in case]
    agent, model = scripted(*steps, **options)  # type: ignore[arg-type]
    told: dict[str, str] = {}
    texts: dict[str, str] = {}

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for name in CUTS:
            turn = await session.send(name)
            told[name] = "".join(await collect(turn.text()))
            texts[name] = (await turn).text

    assert told == texts
    for name, (words, _) in CUTS.items():
        assert words[-1] in texts[name]
    model.script.assert_complete()


async def test_text_of_an_interrupted_turn(
    scripted: MakeScripted, options: dict[str, object]
) -> None:
    agent, _model = scripted(
        say("I look.") + BASH,
        say("Half a thou") + stall(),
        say("next"),
        **options,  # type: ignore[arg-type]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        reading = asyncio.create_task(collect(turn.text()))
        await first_words(turn, "Half a thou")
        await turn.interrupt()
        told = "".join(await reading)
        result = await turn

    assert (result.outcome, result.text) == ("interrupted", "I look.\n\nHalf a thou")
    assert told == result.text


async def test_the_words_of_a_subagent_are_not_the_turns(
    scripted: MakeScripted, options: dict[str, object]
) -> None:
    agent, model = scripted(
        say("I send someone.") + call("Agent", TASK, run_in_background=False),
        say("They are back."),
        **options,  # type: ignore[arg-type]
    )
    model.script.branch("look around", say("I look") + BASH, say("found it"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        told = "".join(await collect(turn.text()))
        result = await turn

    assert told == result.text == "I send someone.\n\nThey are back."
    assert result.answer == "They are back."


async def test_text_comes_as_it_is_written(scripted: MakeScripted) -> None:
    agent, model = scripted(say("first ") + stall() + say("second"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        chunks = turn.text()
        first = await anext(chunks)
        is_settled = turn.is_settled
        model.release()
        rest = "".join(await collect(chunks))

    assert (first, is_settled, rest) == ("first ", False, "second")


async def test_an_api_failure_is_no_text_of_the_model(scripted: MakeScripted) -> None:
    agent, _model = scripted(fail(400, "prompt is strange"), say("fine"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        told = "".join(await collect(turn.text()))
        failed = await turn
        after = await (await session.send("and now?"))

    assert told == failed.text == ""
    assert (failed.outcome, failed.api_error) == ("failed", 400)
    assert "prompt is strange" in failed.answer
    assert (after.outcome, after.text) == ("completed", "fine")
