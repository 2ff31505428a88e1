"""Turns that nobody asked for belong to nobody."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Session
from steersman.journal import Entry, Kind
from steersman.messages import Message, Result, TaskNotification
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say, stall, when
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    collect,
    entries_of,
    entry_where,
    texts_of,
    until,
)

pytestmark = pytest.mark.live

TASK = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}


def is_notice(request: ModelRequest) -> bool:
    """Whether the CLI itself wrote the last prompt, because background work has ended."""
    return "<task-notification>" in request.latest


def passes(sandbox: CliSandbox) -> str:
    """A command that ends when the file `gate` is there."""
    return f"until [ -e {sandbox.project}/gate ]; do sleep 0.02; done; echo through"


async def message_where(session: Session, kind: type[Message]) -> Entry:
    return await entry_where(
        session, lambda e: e.kind is Kind.MESSAGE and isinstance(e.message, kind)
    )


async def unasked_result(session: Session) -> Entry:
    """The end of the turn that nobody asked for."""

    def fits(entry: Entry) -> bool:
        if entry.kind is not Kind.MESSAGE:
            return False
        return isinstance(entry.message, Result) and entry.message.origin is not None

    return await entry_where(session, fits)


def results_in(entries: list[Entry]) -> list[Result]:
    messages = [each.message for each in entries if each.kind is Kind.MESSAGE]
    return [each for each in messages if isinstance(each, Result)]


def unowned_texts(entries: list[Entry]) -> list[str]:
    unowned = [each for each in entries if each.kind is Kind.MESSAGE and not each.turns]
    return texts_of(each.message for each in unowned)


async def test_a_background_subagent_leaks_into_no_other_turn(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    script = Script(
        when(is_notice, say("they are back")),
        when("send someone", call("Agent", TASK), say("sent")),
        when("meanwhile", say("I am here") + stall() + say(", still")),
        when("and after", say("all done")),
        strict=True,
    ).branch("look around", call("Bash", command=passes(sandbox)), say("found it"))
    agent, model = scripted(script, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("send someone")]
        results = [await turns[0]]
        turns.append(await session.send("meanwhile"))
        await asyncio.to_thread(model.wait_for_request, 4, LIMIT)
        # The subagent ends in the middle of the second turn.
        (sandbox.project / "gate").touch()
        await message_where(session, TaskNotification)
        model.release()
        results.append(await turns[1])
        unasked = await unasked_result(session)
        turns.append(await session.send("and after"))
        results.append(await turns[2])
        messages = [await collect(turn.messages()) for turn in turns]
        entries = await entries_of(session)

    assert [each.outcome for each in results] == ["completed"] * 3
    assert [each.text for each in results] == ["sent", "I am here, still", "all done"]
    assert [texts_of(each) for each in messages] == [["sent"], ["I am here, still"], ["all done"]]
    assert [type(each[-1]) for each in messages] == [Result] * 3
    assert unasked.turns == ()
    assert unowned_texts(entries) == ["they are back"]
    costs = results_in(entries)
    assert len(costs) == 4
    assert session.cost_usd == pytest.approx(costs[-1].total_cost_usd)
    assert session.cost_usd > sum(each.cost_usd for each in results)
    script.assert_complete()


async def test_a_background_shell_leaks_into_no_other_turn(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    start = call("Bash", command=passes(sandbox), run_in_background=True)
    agent, model = scripted(
        when(is_notice, stall() + say("the shell is done")),
        when("start", start, say("started")),
        when("meanwhile", say("I am here")),
        when("during", say("that was yours")),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        results = [await (await session.send(prompt)) for prompt in ("start", "meanwhile")]
        note = await (await session.send("a note", query=False))
        await until(lambda: session.state == "idle")
        (sandbox.project / "gate").touch()
        await asyncio.to_thread(model.wait_for_request, 4, LIMIT)
        # Nobody asked for the turn that runs now; the next prompt waits behind it.
        during = await session.send("during")
        model.release()
        results.append(await during)
        messages = await collect(during.messages())
        entries = await entries_of(session)

    assert [each.text for each in results] == ["started", "I am here", "that was yours"]
    assert (note.outcome, note.text, note.cost_usd) == ("completed", "", 0.0)
    assert texts_of(messages) == ["that was yours"]
    assert unowned_texts(entries) == ["the shell is done"]
    assert session.cost_usd == pytest.approx(results_in(entries)[-1].total_cost_usd)
    assert session.cost_usd > sum(each.cost_usd for each in results)
    assert "a note" in str(model.asked[-1].body["messages"])
    model.script.assert_complete()


async def test_taking_back_a_prompt_does_not_stop_the_turn_that_it_waits_behind(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(
        when(is_notice, say("half") + stall() + say(" and whole")),
        when("start", call("Bash", command="true", run_in_background=True), say("started")),
        when("next", say("fresh")),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("start"))
        await asyncio.to_thread(model.wait_for_request, 3, LIMIT)
        unwanted = await session.send("unwanted")
        await unwanted.interrupt()
        model.release()
        await unasked_result(session)
        taken_back = await unwanted
        fresh = await (await session.send("next"))
        entries = await entries_of(session)

    assert (taken_back.outcome, taken_back.text) == ("interrupted", "")
    assert unowned_texts(entries) == ["half and whole"]
    assert (fresh.outcome, fresh.text) == ("completed", "fresh")
