"""Prompts that come together settle apart."""

from __future__ import annotations

import asyncio

import pytest

from steersman.journal import Kind
from steersman.messages import Init, Result
from steersman.testing.script import call, say, when
from tests.live.staging import LIMIT, MakeScripted, collect, entries_of, texts_of, until

pytestmark = pytest.mark.live


async def test_three_prompts_sent_at_once_settle_as_three_turns(scripted: MakeScripted) -> None:
    agent, model = scripted(
        when("first", call("Bash", command="echo one"), say("un")),
        when("second", say("deux")),
        when("third", say("trois", chunks=3)),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send(prompt) for prompt in ("first", "second", "third")]
        results = await asyncio.gather(*turns)
        messages = [await collect(turn.messages()) for turn in turns]
        again = [await collect(turn.messages()) for turn in turns]

    assert [each.outcome for each in results] == ["completed"] * 3
    assert [each.text for each in results] == ["un", "deux", "trois"]
    assert [texts_of(each) for each in messages] == [["un"], ["deux"], ["trois"]]
    assert [[type(each) for each in turn].count(Init) for turn in messages] == [1, 1, 1]
    assert [[type(each) for each in turn].count(Result) for turn in messages] == [1, 1, 1]
    assert [type(each[-1]) for each in messages] == [Result] * 3
    assert messages == again
    assert [each.result for each in results] == [each[-1] for each in messages]
    assert session.cost_usd == pytest.approx(sum(each.cost_usd for each in results))
    assert [request.last_text for request in model.asked] == ["first", "first", "second", "third"]
    model.script.assert_complete()


async def test_every_prompt_of_many_tasks_gets_its_own_answer(scripted: MakeScripted) -> None:
    prompts = [f"number {n:02}" for n in range(20)]
    agent, _model = scripted(*(when(each, say(f"answer to {each}")) for each in prompts))

    async with asyncio.timeout(LIMIT), agent.session() as session:

        async def ask(prompt: str) -> str:
            return (await (await session.send(prompt))).text

        answers = await asyncio.gather(*map(ask, prompts))
        await until(lambda: session.state == "idle")

    assert answers == [f"answer to {each}" for each in prompts]


async def test_text_that_asks_nothing_reaches_the_next_prompt(scripted: MakeScripted) -> None:
    agent, model = scripted(say("heard"), say("again"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        notes = [await session.send(f"note {n}", query=False) for n in (1, 2)]
        asked = await session.send("what did I say?")
        late = await session.send("note 3", query=False)
        last = await session.send("and now?")
        results = [await turn for turn in (*notes, asked, late, last)]

    assert [each.outcome for each in results] == ["completed"] * 5
    assert [each.text for each in results] == ["", "", "heard", "", "again"]
    assert [each.cost_usd > 0 for each in results] == [False, False, True, False, True]
    said = [str(request.body["messages"]) for request in model.asked]
    assert len(said) == 2
    assert all(note in said[0] for note in ("note 1", "note 2", "what did I say?"))
    assert "note 3" not in said[0]
    assert "note 3" in said[1]


async def test_a_reader_who_comes_late_sees_the_whole_turn(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("early", chunks=5), say("late"))

    async with asyncio.timeout(LIMIT), agent.session(include_partial_messages=True) as session:
        turn = await session.send("go")
        live = await collect(turn.messages())
        await (await session.send("and more"))
        later = await collect(turn.messages())
        lines = await collect(turn.raw())

    assert live == later
    assert len(lines) >= len(live)
    owned = [each for each in await entries_of(session) if turn.uuid in each.turns]
    told = [each.message for each in owned if each.kind in {Kind.MESSAGE, Kind.PARTIAL}]
    assert told == live
