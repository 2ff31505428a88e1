"""A fleet on the stock CLI: few CLIs, right answers, nothing lost to rate limits or parking."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from steersman import Agent, Allow
from steersman.fleet import Fleet, FleetStatus, Governor
from steersman.stores import SqliteStore
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, fail, say, when
from tests.live.durable import allow_all, append, goes_on, next_ask, paid
from tests.live.staging import LIMIT, MakeScripted, until
from tests.live.test_keys import config_of

pytestmark = pytest.mark.live

PLENTY = Governor(memory_free=0)


def answer(request: ModelRequest) -> Step:
    """Say what was asked, and which prompts the conversation has."""
    return say(f"{request.last_text} after {prompts_in(request)}")


def prompts_in(request: ModelRequest) -> list[str]:
    said = str(request.body)
    return [word for word in ("q1", "q2", "canary") if word in said]


async def most_sessions(fleet: Fleet, sent: int) -> tuple[int, list[FleetStatus]]:
    """The most sessions at any moment, and each status that does not add up."""
    most, wrong = 0, list[FleetStatus]()
    while fleet.status().settled < sent:
        status = fleet.status()
        most = max(most, status.slots - status.free)
        jobs = status.queued + status.held + status.running + status.parked + status.settled
        wrong += [status] if jobs != status.sent else []
        await asyncio.sleep(0.01)
    return most, wrong


@pytest.mark.parametrize(
    ("many", "turns", "slots"),
    [(4, 2, 2), pytest.param(200, 3, 4, marks=pytest.mark.soak_only)],
    ids=["four", "two hundred"],
)
async def test_conversations_share_a_few_clis_and_each_answer_belongs_to_its_question(
    scripted: MakeScripted, many: int, turns: int, slots: int
) -> None:
    agent, model = scripted(Script(when("q", *[answer] * many * turns)))

    async with asyncio.timeout(LIMIT * many), Fleet(agent, slots=slots, governor=PLENTY) as fleet:
        jobs = [
            await fleet.send(f"customer {number}", f"{number} q{turn}")
            for turn in range(1, turns + 1)
            for number in range(many)
        ]
        watching = asyncio.ensure_future(most_sessions(fleet, len(jobs)))
        texts = [(await job).text for job in jobs]
        most, wrong = await watching

    before = {1: "['q1']", 2: "['q1', 'q2']", 3: "['q1', 'q2']"}
    assert texts == [
        f"{number} q{turn} after {before[turn]}"
        for turn in range(1, turns + 1)
        for number in range(many)
    ]
    assert (most, wrong, len(model.asked)) == (slots, [], many * turns)


async def test_a_turn_that_waits_for_a_person_gives_its_slot_away_and_goes_on_later(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    script = Script(
        append(sandbox, "toolu_1"),
        when("hello", say("Hello.")),
        append(sandbox, "toolu_2"),
        say("Paid."),
    )
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent, _ = scripted(script, inbox=store.inbox())
        async with Fleet(agent, slots=1, governor=PLENTY) as fleet:
            job = await fleet.send("customer 7", "pay", key="invoice 7")
            async with aclosing(store.inbox().watch()) as asks:
                ask = (await anext(asks)).ask
            other = await (await fleet.send("customer 8", "hello"))
            await until(lambda: job.state == "parked")
            words = job.describe()
            await store.inbox().answer(ask, Allow(), by="ann")
            result = await job

    assert (other.text, words) == ("Hello.", "parked: waits for 1 answer")
    assert (result.outcome, result.text, paid(sandbox)) == ("completed", "Paid.", "x\n")


async def test_a_refusal_of_the_api_in_one_session_holds_the_turns_of_all(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(Script(when("q1", fail(429, retry_after=3), answer, answer, answer)))
    governor = Governor(memory_free=0, quiet=0.1)

    async with asyncio.timeout(LIMIT), Fleet(agent, slots=2, governor=governor) as fleet:
        first = await fleet.send("customer 7", "7 q1")
        await until(lambda: fleet.status().at_once == 1)
        second = await fleet.send("customer 8", "8 q1")
        await until(lambda: second.state == "held")
        words = second.describe()
        texts = [(await each).text for each in (first, second)]
        await until(lambda: fleet.status().at_once == 2)

    assert words.startswith("held: rate limit until ")
    assert texts == ["7 q1 after ['q1']", "8 q1 after ['q1']"]
    assert len(model.asked) == 3


async def test_a_cli_that_was_started_ahead_has_nothing_of_another_conversation(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(Script(when("q", *[answer] * 4), when("canary", answer)))

    async with asyncio.timeout(LIMIT), Fleet(agent, slots=3, warm=1, governor=PLENTY) as fleet:
        await (await fleet.send("customer 7", "a canary of customer 7"))
        await until(lambda: fleet.status().ready == 1)
        first = await fleet.send(None, "q1")
        result = await first
    async with asyncio.timeout(LIMIT), agent.open(first.conversation) as later:
        again = await later.run("q2")

    assert (result.text, again.text) == ("q1 after ['q1']", "q2 after ['q1', 'q2']")
    files = {each.stem: each.read_text() for each in config_of(agent.options.env).rglob("*.jsonl")}
    assert "canary" not in files[first.conversation]
    assert len(model.asked) == 3


async def test_an_agent_claims_a_session_that_it_has_prewarmed(scripted: MakeScripted) -> None:
    agent, _ = scripted(Script(when("q", *[answer] * 2)))

    async with asyncio.timeout(LIMIT):
        await agent.prewarm(2)
        before = time.thread_time()
        async with agent.session() as session:
            took = time.thread_time() - before
            first = await session.run("q1")
        second = await agent.run("q1")

    assert took < 0.02
    assert (first.text, second.text) == ("q1 after ['q1']",) * 2


async def test_an_interrupted_job_that_is_parked_ends_and_its_turn_can_be_taken_up(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    first, again = (append(sandbox, f"toolu_{number}") for number in (1, 2))
    agent, _ = scripted(Script(first, when("hello", say("Hello.")), again, say("Paid.")))

    async with asyncio.timeout(2 * LIMIT), SqliteStore(tmp_path / "work.db") as store:
        inbox = store.inbox()
        async with Fleet(agent, slots=1, store=store, governor=PLENTY) as fleet:
            job = await fleet.send("a", "pay", key="invoice 7")
            await next_ask(inbox)
            # The slot is wanted.
            await (await fleet.send("b", "hello"))
            await until(lambda: job.state == "parked")
            await job.interrupt()
            result = await job
            await allow_all(inbox)
            async with aclosing(store.ready()) as ready:
                left = await anext(ready)
            had_run, parked = paid(sandbox), fleet.status().parked
        (done,) = await goes_on(Agent(agent.options, inbox=inbox), key="a")

    assert (result.outcome, len(result.waits_for), job.state) == ("parked", 1, "settled")
    assert (had_run, parked, [each.key for each in left.turns]) == ("", 0, ["invoice 7"])
    assert (done.outcome, done.text, paid(sandbox)) == ("completed", "Paid.", "x\n")
