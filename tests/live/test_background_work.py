"""Turns that nobody asked for belong to nobody."""

from __future__ import annotations

import asyncio
import re

import pytest
from staging import LIMIT, MakeScripted, collect, entry_where, texts_of, until

from steersman import Session
from steersman.journal import Entry, Kind
from steersman.messages import Result, TaskNotification
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall, when

pytestmark = pytest.mark.live

TASK = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}


def is_notice(request: ModelRequest) -> bool:
    """Whether the CLI itself wrote the last prompt, because background work has ended."""
    return "<task-notification>" in request.last_text


def results_in(entries: list[Entry]) -> list[Result]:
    messages = [each.message for each in entries if each.kind is Kind.MESSAGE]
    return [each for each in messages if isinstance(each, Result)]


async def unasked_result(session: Session) -> Entry:
    """The end of the turn that nobody asked for."""

    def fits(entry: Entry) -> bool:
        if entry.kind is not Kind.MESSAGE:
            return False
        return isinstance(entry.message, Result) and entry.message.origin is not None

    return await entry_where(session, fits)


async def entries_of(session: Session) -> list[Entry]:
    return [each async for each in session.journal() if isinstance(each, Entry)]


async def test_a_background_subagent_leaks_into_no_other_turn(scripted: MakeScripted) -> None:
    script = Script(
        when("send someone", call("Agent", TASK), say("sent")),
        when("meanwhile", say("I am here") + stall() + say(", still")),
        when(is_notice, say("they are back")),
        when("and after", say("all done")),
        strict=True,
    ).branch("look around", stall() + say("found it"))
    agent, model = scripted(script)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("send someone")
        one = await first
        second = await session.send("meanwhile")
        await asyncio.to_thread(model.wait_for_request, 4)
        # Lets the subagent end in the middle of the second turn, and both go on.
        model.release()
        await until(lambda: second.is_settled or not model_stalls(model))
        two = await second
        unasked = await unasked_result(session)
        third = await session.send("and after")
        three = await third
        turns = [await collect(turn.messages()) for turn in (first, second, third)]
        await until(lambda: session.state == "idle")
    entries = await entries_of(session)

    assert [each.text for each in (one, two, three)] == ["sent", "I am here, still", "all done"]
    assert [each.outcome for each in (one, two, three)] == ["completed"] * 3
    assert [texts_of(each) for each in turns] == [["sent"], ["I am here, still"], ["all done"]]
    assert unasked.turns == ()
    assert texts_of(each.message for each in entries if not each.turns and is_text(each)) == [
        "they are back"
    ]
    results = results_in(entries)
    assert len(results) == 4
    assert session.cost_usd == pytest.approx(results[-1].total_cost_usd)
    assert session.cost_usd > one.cost_usd + two.cost_usd + three.cost_usd
    script.assert_complete()


def model_stalls(_model: object) -> bool:
    return False


def is_text(entry: Entry) -> bool:
    return entry.kind is Kind.MESSAGE


async def test_a_background_shell_leaks_into_no_other_turn(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    gate = sandbox.project / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.02; done; echo through"
    agent, model = scripted(
        when("start", call("Bash", command=wait, run_in_background=True), say("started")),
        when("meanwhile", say("I am here")),
        when(is_notice, say("the shell is done")),
        when("and after", say("all done")),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        one = await (await session.send("start"))
        two = await (await session.send("meanwhile"))
        gate.touch()
        await unasked_result(session)
        third = await session.send("and after")
        three = await third
        await until(lambda: session.state == "idle")
    entries = await entries_of(session)

    assert [each.text for each in (one, two, three)] == ["started", "I am here", "all done"]
    assert texts_of(await collect(third.messages())) == ["all done"]
    notices = [each for each in entries if isinstance_of(each, TaskNotification)]
    assert len(notices) == 1
    assert session.cost_usd == pytest.approx(results_in(entries)[-1].total_cost_usd)
    model.script.assert_complete()


def isinstance_of(entry: Entry, kind: type) -> bool:
    return entry.kind is Kind.MESSAGE and isinstance(entry.message, kind)


async def test_a_prompt_sent_while_an_unasked_turn_runs_waits_for_its_own(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(
        when("start", call("Bash", command="true", run_in_background=True), say("started")),
        when(is_notice, stall() + say("the shell is done")),
        when("mine", say("yours")),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("start"))
        await asyncio.to_thread(model.wait_for_request, 3)
        mine = await session.send("mine")
        model.release()
        result = await mine
        messages = await collect(mine.messages())
        await until(lambda: session.state == "idle")

    assert (result.outcome, result.text) == ("completed", "yours")
    assert texts_of(messages) == ["yours"]
    model.script.assert_complete()


Steps = tuple[Step, ...]
PATTERN = re.compile("")
