"""A worker, and the programs that send to it, in one process: a SQLite file, on scripted CLIs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import KeyTaken, LimitReached, UsageError
from steersman.fleet import FleetClient, Governor, Job, JobState
from steersman.fleet._dbos.places import place_at
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.worker import Worker
from steersman.journal import Kind
from steersman.options import Caps, Limits
from steersman.permissions import Allow
from steersman.stores import SqliteStore
from steersman.testing.script import Script, Usage, call, calls, fail, say, stall, when
from steersman.testing.scripted.cli import ScriptedCLI

LIMIT = 60.0
QUICK = Rhythm(queue=0.02, ends=0.02, signals=0.02)
PLENTY = Governor(memory_free=0)


def cli(*steps: Any, **more: Any) -> ScriptedCLI:
    return ScriptedCLI(Script(*steps), **more)


@asynccontextmanager
async def a_worker(
    url: str, agents: ScriptedCLI | dict[str, Agent], **more: Any
) -> AsyncGenerator[Worker]:
    """A worker that takes jobs of a store, drained at the end."""
    if isinstance(agents, ScriptedCLI):
        agents = {"default": Agent(transport=agents)}
    place = place_at(url, create=True)
    given = {"lease": 20.0, "park_after": 0.05, "governor": PLENTY, "rhythm": QUICK, **more}
    worker = Worker(place, agents, drain_timeout=0.0, **given)
    running = asyncio.Task(worker.run())
    try:
        async with asyncio.timeout(LIMIT):
            waiting = asyncio.Task(worker.is_ready.wait())
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            yield worker
    finally:
        worker.drain()
        await asyncio.wait_for(running, LIMIT)


def url_of(folder: Path) -> str:
    return f"sqlite://{folder / 'fleet.db'}"


async def in_state(client: FleetClient, job: Job, state: JobState, why: str = "") -> str:
    """What a job waits for, once it is in a state for a reason that begins so."""
    while True:
        seen = await client.job(job.id)
        assert seen is not None
        assert seen.state != "settled"
        if seen.state == state and seen.why.startswith(why):
            return seen.why
        await asyncio.sleep(0.01)


async def test_a_job_is_run_by_a_worker_and_read_by_every_program(tmp_path: Path) -> None:
    url = url_of(tmp_path)
    place = cli(say("half", chunks=2) + stall() + say(" whole"))
    async with a_worker(url, place), FleetClient(url) as client:
        job = await client.send("a", "tell", key="k")
        reading = asyncio.ensure_future(anext(aiter(job.text())))
        await in_state(client, job, "running")
        status = await client.status()
        (row,) = await client.jobs(conversation="a")
        reading.cancel()
        await asyncio.wait({reading})
        await place.release()
        entries = [each async for each in job.entries()]
        later = [each.seq async for each in job.entries(after=2)]
        await job
        async with FleetClient(url) as other:
            seen = await other.job(job.id)
            assert seen is not None
            again = await seen
            texts = [each async for each in seen.text()]
            unknown = await other.job("job-unknown")
            settled = await other.jobs(states=["settled"])
            after = await other.status()

    assert reading.cancelled()
    assert [each.seq for each in entries] == [*range(1, len(entries) + 1)]
    assert (entries[0].kind, entries[-1].kind) == (Kind.SENT, Kind.SETTLED)
    assert later == [*range(3, len(entries) + 1)]
    assert (status.jobs, status.holds) == ({"running": 1}, {})
    (worker,) = status.workers
    assert (row.worker, row.attempts, row.state) == (worker.worker, 1, "running")
    assert (worker.slots, worker.agents, worker.is_alive) == (4, ("default",), True)
    assert (again.outcome, again.text, "".join(texts)) == ("completed", *["half whole"] * 2)
    assert (unknown, [each.id for each in settled], after.jobs) == (None, [job.id], {})


async def test_a_journal_of_a_job_has_whole_messages_and_only_its_own_turn(tmp_path: Path) -> None:
    place = cli(when("first", say("One.", chunks=3)), when("second", say("Two.", chunks=3)))
    async with a_worker(url_of(tmp_path), place), FleetClient(url_of(tmp_path)) as client:
        given = (("first", -1000), ("second", 1000))
        jobs = [await client.send("a", each, priority=number) for each, number in given]
        oldest = await client.jobs(most=1)
        texts = [[chunk async for chunk in each.text()] for each in jobs]

    assert texts == [["One."], ["Two."]]
    assert [(each.id, each.spec.priority) for each in oldest] == [(jobs[0].id, -1000)]


async def test_a_key_is_one_job_for_all_programs_and_another_prompt_with_it_is_refused(
    tmp_path: Path,
) -> None:
    place = cli()
    async with a_worker(url_of(tmp_path), place), FleetClient(url_of(tmp_path)) as client:
        async with FleetClient(url_of(tmp_path)) as other:
            sent = [client.send("a", "pay", key="7"), other.send("a", "pay", key="7")]
            jobs = await asyncio.gather(*sent)
            texts = [(await each).text for each in jobs]
            with pytest.raises(KeyTaken):
                await other.send("a", "pay twice", key="7")
        new = [await client.send(None, "hello") for _ in range(2)]
        hellos = [(await each).text for each in new]

    assert (texts, hellos) == (["Echo: pay"] * 2, ["Echo: hello"] * 2)
    assert sorted(each.last_text for each in place.asked) == ["hello", "hello", "pay"]
    assert len({each.conversation for each in new}) == 2
    assert len({each.key for each in new}) == 2


async def test_a_parked_job_says_how_many_answers_it_waits_for_and_goes_on_with_one(
    tmp_path: Path,
) -> None:
    reads = [call("WebFetch", url=f"https://{each}", id_=f"toolu_{each}") for each in "abc"]
    place = cli(when("one", reads[0]), when("two", calls(*reads[1:])))
    async with (
        a_worker(url_of(tmp_path), place),
        FleetClient(url_of(tmp_path)) as client,
        SqliteStore(tmp_path / "fleet.db") as store,
    ):
        one, two = await client.send("a", "one"), await client.send("b", "two")
        words = [await in_state(client, each, "parked") for each in (one, two)]
        status = await client.status()
        running = place.running
        asks = await store.inbox().list()
        (ask,) = [each for each in asks if "toolu_a" in str(each.payload)]
        await store.inbox().answer(ask, Allow(), by="ann")
        result = await one

    assert words == ["waits for 1 answer", "waits for 2 answers"]
    assert status.jobs == {"parked": 2}
    assert status.holds == {f"parked: {each}": 1 for each in words}
    assert (running, result.outcome, len(place.launches)) == (0, "completed", 3)


async def test_a_job_is_withdrawn_before_it_begins_and_interrupted_while_it_runs(
    tmp_path: Path,
) -> None:
    place = cli(say("half") + stall(), when("after", say("Next.")))
    async with a_worker(url_of(tmp_path), place, slots=1), FleetClient(url_of(tmp_path)) as client:
        await client.budget("team", usd=5.0, per="ever")
        caps = Limits(turn=Caps(usd=2.0))
        runs = await client.send("a", "begin", budget="team", limits=caps)
        behind = await client.send("a", "behind", budget="team", limits=caps)
        await place.wait_for_stall()
        await in_state(client, runs, "running")
        reserved = [each.reserved for each in (await client.status()).budgets]
        withdrawn = [await each.withdraw() for each in (runs, behind, behind)]
        again = [await client.cancel(each) for each in (behind.id, "job-unknown")]
        await runs.interrupt()
        outcomes = [(await each).outcome for each in (runs, behind)]
        after = await client.send("a", "after")
        text = (await after).text
        async with asyncio.timeout(LIMIT):
            while any(each.reserved for each in (await client.status()).budgets):  # noqa: ASYNC110 - a row
                await asyncio.sleep(0.01)
        left = place.running

    assert (withdrawn, again) == ([False, True, False], [False, False])
    assert (outcomes, text, left) == (["cancelled", "cancelled"], "Next.", 0)
    assert reserved == [2.0]


async def test_a_parked_job_that_is_cancelled_gives_its_money_back(tmp_path: Path) -> None:
    place = cli(call("Write", file_path="a", content="x"))
    async with a_worker(url_of(tmp_path), place), FleetClient(url_of(tmp_path)) as client:
        await client.budget("team", usd=5.0, per="ever")
        job = await client.send("a", "pay", budget="team", limits=Limits(turn=Caps(usd=2.0)))
        await in_state(client, job, "parked")
        (before,) = (await client.status()).budgets
        cancelled = await client.cancel(job.id)
        result = await job
        (after,) = (await client.status()).budgets

    assert (cancelled, result.outcome) == (True, "cancelled")
    assert (before.reserved, after.reserved) == (2.0, 0.0)


async def test_money_that_is_reserved_holds_a_job_and_money_that_is_spent_ends_it(
    tmp_path: Path,
) -> None:
    costs = Usage(input_tokens=100_000)
    place = cli(
        when("first", say("One.").using(costs) + stall()), when("second", say("Two.").using(costs))
    )
    async with a_worker(url_of(tmp_path), place), FleetClient(url_of(tmp_path)) as client:
        with pytest.raises(UsageError, match="a budget of this store") as refused:
            await client.send("a", "first", budget="team")
        await client.budget("team", usd=1.0, per="ever")
        with pytest.raises(UsageError, match="a budget of this store: team"):
            await client.send("a", "first", budget="other")
        caps = Limits(turn=Caps(usd=0.9))
        first = await client.send("a", "first", budget="team", limits=caps)
        await place.wait_for_stall()
        second = await client.send("b", "second", budget="team", limits=caps)
        words = await in_state(client, second, "held")
        await place.release()
        results = [await each for each in (first, second)]
        (budget,) = (await client.status()).budgets
        third = await (await client.send("c", "third", budget="team", limits=caps))

    assert "client.budget('team', usd=..., per=...)" in str(refused.value)
    assert words == "budget 'team': other turns have reserved what is left"
    assert results[0].is_success
    assert results[0].cost_usd > 0.1
    assert budget.spent == pytest.approx(results[0].cost_usd)
    assert budget.reserved == 0.0
    for each in (results[1], third):
        assert (each.outcome, type(each.cause)) == ("failed", LimitReached)
        assert str(each.cause).startswith("the budget 'team' has reached its limit of 1 usd: ")
        assert "client.budget('team', usd=..., per='ever')" in str(each.cause)
    assert len(place.asked) == 1


async def test_a_job_of_an_agent_that_no_worker_has_waits_for_one(tmp_path: Path) -> None:
    place = cli()
    async with a_worker(url_of(tmp_path), place), FleetClient(url_of(tmp_path)) as client:
        with pytest.raises(UsageError, match="an agent of a worker: default"):
            await client.send("a", "hello", agent="payer")
    async with FleetClient(url_of(tmp_path)) as client:
        job = await client.send("a", "hello", agent="payer")
        async with a_worker(url_of(tmp_path), place):
            words = await in_state(client, job, "held")
        async with a_worker(url_of(tmp_path), {"payer": Agent(transport=place)}):
            result = await job

    assert words == "no worker that has tried it has the agent 'payer'"
    assert result.text == "Echo: hello"


async def test_a_second_worker_in_a_process_is_refused_and_the_first_one_works_on(
    tmp_path: Path,
) -> None:
    url = url_of(tmp_path)
    async with a_worker(url, cli()), FleetClient(url) as client:
        with pytest.raises(UsageError, match="one engine in a process") as refused:
            async with a_worker(url, cli()):
                pass
        text = (await (await client.send("a", "hello"))).text

    assert str(refused.value).startswith(f"store: got '{tmp_path / 'fleet.db'}'")
    assert text == "Echo: hello"


async def test_a_worker_that_is_drained_parks_what_runs_and_another_one_continues_it(
    tmp_path: Path,
) -> None:
    place = cli(say("half") + stall(), say("Whole."))
    async with FleetClient(await prepared(tmp_path)) as client:
        async with a_worker(url_of(tmp_path), place) as worker:
            job = await client.send("a", "tell", key="k")
            await place.wait_for_stall()
            asked = [await client.drain("nobody"), await client.drain(worker.name)]
            async with asyncio.timeout(LIMIT):
                while (await client.status()).workers:  # noqa: ASYNC110 - a row
                    await asyncio.sleep(0.01)
        (row,) = await client.jobs()
        left = place.running
        async with a_worker(url_of(tmp_path), place):
            result = await job

    assert asked == [0, 1]
    assert (row.state, row.worker, left) == ("queued", "", 0)
    assert (result.outcome, len(place.launches)) == ("completed", 2)


async def test_jobs_that_wait_for_a_worker_are_run_although_it_takes_them_while_it_starts(
    tmp_path: Path,
) -> None:
    async with FleetClient(await prepared(tmp_path)) as client:
        jobs = [await client.send(f"c{number}", "hello") for number in range(3)]
        async with a_worker(url_of(tmp_path), cli()):
            results = [await each for each in jobs]

    assert [(each.outcome, each.text) for each in results] == [("completed", "Echo: hello")] * 3


async def prepared(folder: Path) -> str:
    """The URL of a store that a worker has prepared."""
    async with a_worker(url_of(folder), cli()):
        return url_of(folder)


async def test_a_refusal_of_the_api_or_a_lack_of_memory_holds_the_jobs_of_a_worker(
    tmp_path: Path,
) -> None:
    free = [1 << 29]
    governor = Governor(memory_free=1 << 30, read_memory=lambda: free[0])
    # The fifth refusal names a time that is long enough for a loaded machine to see it.
    place = cli(when("limited", *[fail(429)] * 5, say("Fine.")), retry_pace=0.02)
    async with (
        a_worker(url_of(tmp_path), place, governor=governor),
        FleetClient(url_of(tmp_path)) as client,
    ):
        first = await client.send("a", "limited")
        words = [await in_state(client, first, "held")]
        free[0] = 1 << 31
        await in_state(client, first, "running")
        await place.wait_for_request()
        second = await client.send("b", "hello")
        words += [await in_state(client, second, "held")]
        text = (await first).text
        assert await client.cancel(second.id)

    assert words[0] == "memory: 512 MB free, 1024 MB wanted"
    assert words[1].startswith("rate limit until ")
    assert text == "Fine."


async def test_after_a_refusal_a_worker_runs_fewer_turns_at_once(tmp_path: Path) -> None:
    governor = Governor(memory_free=0, quiet=1000.0)
    refused = fail(429, retry_after=1)
    place = cli(when("limited", refused, say("half") + stall()), retry_pace=1.0)
    async with (
        a_worker(url_of(tmp_path), place, governor=governor),
        FleetClient(url_of(tmp_path)) as client,
    ):
        first = await client.send("a", "limited")
        await place.wait_for_stall()
        second = await client.send("b", "hello")
        words = await in_state(client, second, "held", "rate limit: ")
        await place.release()
        results = [await each for each in (first, second)]

    assert words == "rate limit: 1 turn at once for now"
    assert [each.text for each in results] == ["half", "Echo: hello"]


async def test_a_result_in_a_store_has_no_secret_that_the_cli_was_given(tmp_path: Path) -> None:
    secret = "hunter2-hunter2-hunter2"
    place = cli(say(f"The password is {secret}."))
    agents = {"default": Agent(transport=place, env={"DB_PASSWORD": secret})}
    async with a_worker(url_of(tmp_path), agents), FleetClient(url_of(tmp_path)) as client:
        result = await (await client.send("a", "what is it?"))

    assert result.text.startswith("The password is ")
    assert secret not in result.text
