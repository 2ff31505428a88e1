"""Parking, on the stock CLI: a session leaves while it waits, and another one goes on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from examples import leave_and_go_on
from steersman import Agent, Allow, Deny
from steersman.inbox import StoredInbox
from steersman.options import Park
from steersman.permissions import Ask, ElicitationAnswer, Policy
from steersman.permissions import ask as ask_first
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say, stall
from tests.live.durable import (
    CUSTOMER,
    INVOICE,
    allow_all,
    another_host,
    append,
    asked,
    goes_on,
    next_ask,
    paid,
    parked_turn,
    store_at,
    write,
)
from tests.live.staging import LIMIT, MakeScripted, first_words, inhabitants
from tests.live.test_options import CURIOUS

pytestmark = pytest.mark.live

ROUNDS = range(20 if os.environ.get("STEERSMAN_SOAK") else 1)

TASK = {"description": "pay", "prompt": "pay for me", "subagent_type": "general-purpose"}


@pytest.mark.soak
@pytest.mark.parametrize("_round", ROUNDS)
async def test_a_parked_turn_is_taken_up_and_its_call_runs_once(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, _round: int
) -> None:
    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, model = scripted(
            append(sandbox, "toolu_1"),
            append(sandbox, "toolu_2"),
            say("Paid."),
            inbox=store.inbox(),
        )
        session, result, ask = await parked_turn(agent, store)
        left, had_run = inhabitants(sandbox.root), paid(sandbox)
        await store.inbox().answer(ask, Allow(), by="ann", seen=ask.digest)
        (done,) = await goes_on(agent)
        async with agent.open(CUSTOMER) as third:
            nothing = await third.resume_turns()
            again = await (await third.send("pay", key=INVOICE))

    assert (result.outcome, result.waits_for, session.state) == ("parked", (ask.id,), "completed")
    assert (left, had_run) == ({}, "")
    assert (done.outcome, done.text, done.uuid) == ("completed", "Paid.", result.uuid)
    assert (paid(sandbox), nothing) == ("x\n", [])
    assert (again.outcome, again.text, again.uuid) == ("completed", "Paid.", result.uuid)
    words = model.asked[1].last_text
    assert words.startswith("Continue from where you left off.")
    assert (
        f"- Bash with the input {json.dumps(dict(ask.tool_input), separators=(',', ':'))}" in words
    )
    assert words.endswith(
        ": allowed by ann. Make the same call again, with exactly the same input."
    )


async def test_a_session_that_waits_only_for_asks_parks_by_itself_and_a_worker_goes_on(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, _ = scripted(
            append(sandbox, "toolu_1"),
            append(sandbox, "toolu_2"),
            say("Paid."),
            inbox=store.inbox(),
            park=Park(after=0.2),
        )
        result = await leave_and_go_on.begin(agent, "pay")
        await allow_all(store.inbox())
        async with aclosing(store.ready()) as ready:
            (done,) = await leave_and_go_on.go_on(agent, await anext(ready))

    assert (result.outcome, len(result.waits_for)) == ("parked", 1)
    assert (done.outcome, done.text, paid(sandbox)) == ("completed", "Paid.", "x\n")


@pytest.mark.soak
@pytest.mark.parametrize("_round", ROUNDS)
@pytest.mark.parametrize("closes", [True, False], ids=["closes", "dies"])
async def test_a_host_that_gets_a_sigterm_is_continued_whether_it_closes_or_dies(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, _round: int, *, closes: bool
) -> None:
    agent, _ = scripted(append(sandbox, "toolu_1"), append(sandbox, "toolu_2"), say("Paid."))

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        async with another_host(agent, work_url, closes=closes) as host:
            await next_ask(store.inbox())
            host.terminate()
            status = await host.wait()
        await allow_all(store.inbox())
        (done,) = await goes_on(Agent(agent.options, inbox=store.inbox()))

    assert (status == 0) is closes
    assert (done.outcome, done.text, paid(sandbox)) == ("completed", "Paid.", "x\n")


async def test_a_call_of_a_subagent_is_taken_up(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    script = Script(
        call("Agent", TASK, run_in_background=False),
        call("Agent", TASK, run_in_background=False),
        say("Paid."),
        strict=True,
    ).branch("pay for me", append(sandbox, "toolu_1"), append(sandbox, "toolu_2"), say("Done."))

    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, model = scripted(script, inbox=store.inbox())
        _, result, ask = await parked_turn(agent, store)
        await allow_all(store.inbox())
        (done,) = await goes_on(agent)
        left = await store.inbox().list()

    assert (result.waits_for, ask.agent is not None) == ((ask.id,), True)
    assert (done.text, paid(sandbox), left) == ("Paid.", "x\n", [])
    told = [each.last_text for each in model.asked if "was left" in each.last_text]
    assert "Start the subagent again with the same task" in told[0]


async def test_a_call_of_an_own_tool_is_taken_up(scripted: MakeScripted, work_url: str) -> None:
    ran: list[int] = []

    def pay(invoice: int) -> str:
        """Pay an invoice."""
        ran.append(invoice)
        return "paid"

    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, _ = scripted(
            call("mcp__functions__pay", invoice=7, id_="toolu_1"),
            call("mcp__functions__pay", invoice=7, id_="toolu_2"),
            say("Paid."),
            inbox=store.inbox(),
            functions=[pay],
            policy=Policy(ask_first("mcp__functions__pay")),
        )
        _, result, _ = await parked_turn(agent, store)
        had_run = [*ran]
        await allow_all(store.inbox())
        (done,) = await goes_on(agent)

    assert (result.outcome, had_run) == ("parked", [])
    assert (done.text, ran) == ("Paid.", [7])


async def test_two_calls_of_one_message_are_both_taken_up(
    scripted: MakeScripted, work_url: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    for path in paths:
        path.write_text(path.name)

    def both(*ids: str) -> Step:
        # Calls that only read are asked about at the same time.
        pairs = zip(paths, ids, strict=True)
        return calls(*(call("Read", file_path=str(path), id_=id_) for path, id_ in pairs))

    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, model = scripted(
            both("toolu_1", "toolu_2"),
            both("toolu_3", "toolu_4"),
            say("Read."),
            inbox=store.inbox(),
        )
        async with agent.open(CUSTOMER) as session:
            turn = await session.send("read")
            await asked(store.inbox(), 2)
            ids = await session.park()
            result = await turn
        answered = await allow_all(store.inbox())
        (done,) = await goes_on(agent)

    assert (result.waits_for, len(ids), answered) == (ids, 2, 2)
    assert model.asked[1].last_text.count("allowed by ann") == 2
    results = model.asked[-1].tool_results
    assert (done.text, "one" in results["toolu_3"], "two" in results["toolu_4"]) == (
        "Read.",
        True,
        True,
    )


async def edit(inbox: StoredInbox, ask: Ask) -> None:
    await inbox.answer(ask, Allow({**ask.tool_input, "content": "edited"}), by="ann")


async def deny(inbox: StoredInbox, ask: Ask) -> None:
    await inbox.answer(ask, Deny("too much"), by="ann")


async def expire(inbox: StoredInbox, ask: Ask) -> None:
    await inbox.expire(ask)


@pytest.mark.parametrize(
    ("decide", "calls_again", "words", "written"),
    [
        (edit, True, "allowed by ann, with the input changed to", "edited"),
        (deny, False, "denied by ann: too much. Do not make this call again.", ""),
        (expire, False, "denied, because no answer came in time. Do not make", ""),
    ],
    ids=["edited", "denied", "expired"],
)
async def test_the_model_is_told_what_was_decided(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    work_url: str,
    decide: Callable[[StoredInbox, Ask], Any],
    *,
    calls_again: bool,
    words: str,
    written: str,
) -> None:
    again = [write(sandbox, "toolu_2")] if calls_again else []

    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, model = scripted(
            write(sandbox, "toolu_1"), *again, say("So be it."), inbox=store.inbox()
        )
        _, _, ask = await parked_turn(agent, store)
        await decide(store.inbox(), ask)
        (done,) = await goes_on(agent)

    assert words in model.asked[1].last_text
    assert (done.text, paid(sandbox)) == ("So be it.", written)


async def test_another_input_waits_again_and_the_turn_can_be_parked_again(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, _ = scripted(
            write(sandbox, "toolu_1"),
            write(sandbox, "toolu_2", "more"),
            write(sandbox, "toolu_3", "more"),
            say("Paid."),
            inbox=store.inbox(),
            park=Park(after=0.2),
        )
        _, _, first = await parked_turn(agent, store)
        await allow_all(store.inbox())
        (second,) = await goes_on(agent)
        had_run = paid(sandbox)
        await allow_all(store.inbox())
        (done,) = await goes_on(agent)

    assert (second.outcome, had_run) == ("parked", "")
    assert second.waits_for != (first.id,)
    assert (done.text, paid(sandbox)) == ("Paid.", "more")


async def test_prompts_that_were_never_sent_are_parked_too_and_taken_up_in_order(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, model = scripted(
            write(sandbox, "toolu_1"),
            write(sandbox, "toolu_2"),
            say("Paid."),
            say("Second."),
            say("Third."),
            inbox=store.inbox(),
        )
        async with agent.open(CUSTOMER) as session:
            turns = [await session.send(text) for text in ("pay", "second", "third")]
            await next_ask(store.inbox())
            asks = await session.park()
            results = [await turn for turn in turns]
        await allow_all(store.inbox())
        done = await goes_on(agent)

    assert [each.outcome for each in results] == ["parked"] * 3
    assert [each.waits_for for each in results] == [asks, (), ()]
    assert [turn.delivery for turn in turns] == ["started", "queued", "queued"]
    assert [(each.uuid, each.text) for each in done] == [
        (turn.uuid, text) for turn, text in zip(turns, ("Paid.", "Second.", "Third."), strict=True)
    ]
    assert [each.last_text for each in model.asked[-2:]] == ["second", "third"]


async def test_a_turn_that_runs_is_parked_without_an_interrupt(
    scripted: MakeScripted, work_url: str
) -> None:
    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        agent, _ = scripted(say("half") + stall(), say("Whole."), inbox=store.inbox())
        async with agent.open(CUSTOMER) as session:
            turn = await session.send("tell")
            await first_words(turn, "half")
            asks = await session.park()
            result = await turn
        (done,) = await goes_on(agent)

    assert (asks, result.outcome, result.text) == ((), "parked", "half")
    assert (done.outcome, done.text) == ("completed", "Whole.")


@pytest.mark.soak_only
async def test_a_question_of_an_mcp_server_is_taken_up(
    scripted: MakeScripted, work_url: str
) -> None:
    async with asyncio.timeout(LIMIT), store_at(work_url) as store:
        inbox = store.inbox()
        agent, model = scripted(
            call("mcp__curious__ask", id_="toolu_1"),
            call("mcp__curious__ask", id_="toolu_2"),
            say("done"),
            mcp_servers={
                "curious": {"command": "/usr/bin/env", "args": ["python3", "-c", CURIOUS]}
            },
            allowed_tools=["mcp__curious__ask"],
            inbox=inbox,
        )
        _, result, ask = await parked_turn(agent, store)
        await inbox.answer(ask, ElicitationAnswer("accept", {"name": "Ann"}), by="ann")
        (done,) = await goes_on(agent)

    assert (result.waits_for, ask.kind) == ((ask.id,), "elicitation")
    assert "a request of the kind elicitation: answered by ann" in model.asked[1].last_text
    assert json.loads(model.asked[-1].tool_results["toolu_2"])["content"] == {"name": "Ann"}
    assert done.text == "done"
