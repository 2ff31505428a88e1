"""A fleet in one process, on scripted CLIs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import ChannelClosed, CliNotFound, KeyTaken, LimitReached, UsageError
from steersman.fleet import Fleet, FleetStatus, Governor, Job
from steersman.journal import Kind
from steersman.options import Caps, Limits
from steersman.permissions import Allow
from steersman.ports import Channel, Launch, Receiver
from steersman.stores import SqliteStore
from steersman.testing.faults import VirtualClockLoop
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, Usage, call, fail, say, stall, when
from steersman.testing.scripted.cli import ScriptedCLI

LIMIT = 20.0
WRITE = call("Write", file_path="paid", content="x", id_="toolu_1")
PLENTY = Governor(memory_free=0)


def cli(*steps: Any) -> ScriptedCLI:
    return ScriptedCLI(Script(*steps))


@asynccontextmanager
async def a_fleet(place: ScriptedCLI | None = None, **more: Any) -> AsyncGenerator[Fleet]:
    """A fleet whose CLIs are scripted; nothing of it is left."""
    place = place or cli()
    limit = more.pop("limit", LIMIT)
    agent = Agent(transport=place, inbox=more.pop("inbox", None))
    more.setdefault("governor", PLENTY)
    fleet = Fleet(agent, **more)
    async with asyncio.timeout(limit), fleet:
        yield fleet
    assert place.running == 0
    status = fleet.status()
    assert (adds_up(status), status.free) == (True, status.slots)


def adds_up(status: FleetStatus) -> bool:
    jobs = status.queued + status.held + status.running + status.parked + status.settled
    idle = status.warm + status.ready + status.starting + status.closing + status.free
    slots = status.working + idle
    return jobs == status.sent and slots == status.slots and status.free >= 0


async def until(fleet: Fleet, is_so: Callable[[FleetStatus], bool]) -> FleetStatus:
    while not is_so(fleet.status()):  # noqa: ASYNC110 - it is the status that is tested
        await asyncio.sleep(0.001)
    return fleet.status()


async def sampled(fleet: Fleet, place: ScriptedCLI, sent: int) -> tuple[list[FleetStatus], int]:
    """The status every few milliseconds until all is settled, and the most CLIs."""
    seen: list[FleetStatus] = []
    most = 0
    while not seen or seen[-1].settled < sent:
        seen.append(fleet.status())
        most = max(most, place.running)
        await asyncio.sleep(0.005)
    return seen, most


def answer(request: ModelRequest) -> Step:
    """Say what was asked, and how many prompts the conversation has."""
    asked = [each for each in request.body["messages"] if each["role"] == "user"]
    return say(f"{request.last_text} is prompt {len(asked)}")


# --- Many conversations ------------------------------------------------------------------


@pytest.mark.parametrize(
    "many", [40, pytest.param(200, marks=pytest.mark.soak_only)], ids=["forty", "two hundred"]
)
async def test_many_conversations_share_four_slots_and_each_gets_its_answers(many: int) -> None:
    place = cli(when(lambda _: True, *[answer] * 3 * many))
    async with a_fleet(place, idle=5.0) as fleet:
        jobs = [
            await fleet.send(f"c{number}", f"{number}/{turn}", key=f"{turn}")
            for turn in (1, 2, 3)
            for number in range(many)
        ]
        sampling = asyncio.ensure_future(sampled(fleet, place, len(jobs)))
        settled = [(await job).text for job in jobs]
        seen, most = await sampling

    assert settled == [
        f"{number}/{turn} is prompt {turn}" for turn in (1, 2, 3) for number in range(many)
    ]
    assert [each for each in seen if not adds_up(each)] == []
    assert most <= 4
    assert max(each.working for each in seen) == 4


async def test_a_warm_session_is_used_again_and_closed_after_its_time() -> None:
    place = cli()
    async with a_fleet(place, idle=0.05) as fleet:
        for number in range(3):
            await (await fleet.send("a", f"question {number}"))
        launches = len(place.launches)
        await until(fleet, lambda status: status.free == status.slots)
        again = await (await fleet.send("a", "after that"))

    assert (launches, len(place.launches)) == (1, 2)
    assert again.text == "Echo: after that"


async def test_a_key_is_one_job_and_another_prompt_with_it_is_refused() -> None:
    place = cli()
    async with a_fleet(place) as fleet:
        first = await fleet.send("a", "pay", key="invoice 7")
        second = await fleet.send("a", "pay", key="invoice 7")
        with pytest.raises(KeyTaken):
            await fleet.send("a", "pay twice", key="invoice 7")
        other = await fleet.send("b", "pay twice", key="invoice 7")
        results = [await each for each in (first, second, other)]
        third = await (await fleet.send("a", "pay", key="invoice 7"))

    assert [each.text for each in (*results, third)] == [
        *["Echo: pay"] * 2,
        "Echo: pay twice",
        "Echo: pay",
    ]
    assert [each.last_text for each in place.asked] == ["pay", "pay twice"]


async def test_a_job_that_is_sent_again_after_its_end_has_its_text_although_nobody_kept_it() -> (
    None
):
    place = cli()
    async with a_fleet(place) as fleet:
        await (await fleet.send("a", "pay", key="7"))
        again = await fleet.send("a", "pay", key="7")
        texts = [each async for each in again.text()]
        seen = (again.state, again.why, again.describe(), (await again).outcome)

    assert texts == ["Echo: pay"]
    assert seen == ("settled", "", "settled", "completed")
    assert len(place.asked) == 1


async def test_the_text_and_the_entries_of_a_job_can_be_read_while_it_runs_and_after() -> None:
    place = cli(say("half", chunks=2) + stall() + say(" whole"))
    async with a_fleet(place) as fleet:
        job = await fleet.send("a", "tell")
        text = job.text()
        begin = await anext(text)
        await place.release()
        rest = "".join([each async for each in text])
        entries = [each async for each in job.entries()]
        later = [each.seq async for each in job.entries(after=2)]
        result = await job

    assert begin + rest == result.text == "half whole"
    assert [each.seq for each in entries] == list(range(1, len(entries) + 1))
    assert later == list(range(3, len(entries) + 1))
    assert entries[-1].kind is Kind.SETTLED


async def test_a_prompt_for_now_joins_the_turn_at_work_and_otherwise_is_the_next_turn() -> None:
    place = cli(
        say("half") + stall(), when("next", *[say("Next.")] * 2), when("last", say("Last."))
    )
    async with a_fleet(place) as fleet:
        first = await fleet.send("a", "begin")
        await place.wait_for_stall()
        last = await fleet.send("a", "last")
        joined = await fleet.send("a", "next to that", when="now")
        results = [await each for each in (first, joined, last)]
        other = await (await fleet.send("b", "next of b", when="next"))

    assert [each.is_success for each in results[1:]] == [True, True]
    assert other.text == "Next."
    assert [each.last_text for each in place.asked] == [
        "begin",
        "next to that",
        "last",
        "next of b",
    ]
    assert len(place.launches) == 2


# --- What holds turns --------------------------------------------------------------------


def test_a_storm_of_refusals_loses_no_turn_keeps_order_and_is_explained() -> None:
    """Twelve conversations with two turns each; the first requests of half of them get a 429."""
    refused = [when(f"{number}/1", fail(429), answer) for number in range(0, 12, 2)]
    place = ScriptedCLI(Script(*refused, when("/", *[answer] * 24)), retry_pace=1.0)

    async def storm() -> tuple[list[str], set[str], FleetStatus, int]:
        governor = Governor(memory_free=0, quiet=5.0)
        async with a_fleet(place, slots=8, governor=governor, limit=9999.0) as fleet:
            jobs = [
                await fleet.send(f"c{number}", f"{number}/{turn}")
                for turn in (1, 2)
                for number in range(12)
            ]
            sampling = asyncio.ensure_future(sampled(fleet, place, len(jobs)))
            texts = [(await job).text for job in jobs]
            seen, _ = await sampling
            words = {each for status in seen for each in status.holds if each.startswith("held")}
            least = min(each.at_once for each in seen)
            assert [each for each in seen if not adds_up(each)] == []
            # Time for full speed: the clock is virtual.
            await asyncio.sleep(60.0 * 60)
            (await (await fleet.send("c0", "0/3"))).text  # noqa: B018
            return texts, words, fleet.status(), least

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        texts, words, after, least = runner.run(_within_an_age(storm()))

    assert texts == [f"{n}/{turn} is prompt {turn}" for turn in (1, 2) for n in range(12)]
    assert least < 8
    assert after.at_once == 8
    assert any(each.startswith("held: rate limit until ") for each in words)
    assert {each.split(" until ")[0].split(": ")[1] for each in words} == {"rate limit"}


async def _within_an_age(work: Any) -> Any:
    return await work


async def test_without_memory_nothing_starts_and_warm_sessions_are_given_back() -> None:
    free = [1 << 40]
    governor = Governor(memory_free=1 << 30, read_memory=lambda: free[0])
    place = cli()
    async with a_fleet(place, governor=governor) as fleet:
        await asyncio.gather(*[(await fleet.send(name, "hello")).result() for name in "ab"])
        free[0] = 1 << 29
        held = await fleet.send("c", "hello")
        await until(fleet, lambda status: status.free == 4)
        words = held.describe()
        launches = len(place.launches)
        free[0] = 1 << 40
        result = await held

    assert words == "held: memory: 512 MB free, 1024 MB wanted"
    assert (launches, place.running) == (2, 0)
    assert result.is_success


COSTS = Usage(input_tokens=100_000, output_tokens=1000)


async def test_a_budget_is_not_exceeded_whatever_is_sent_how_often() -> None:
    place = cli(when(lambda _: True, *[say("fine").using(COSTS)] * 50))
    caps = Limits(turn=Caps(usd=2.0))
    async with a_fleet(place, slots=4) as fleet:
        probe = await (await fleet.send("probe", "how much?"))
        await fleet.budget("team-a", usd=probe.cost_usd * 5 + 2.0, per="day")
        jobs: list[Job] = []
        refused = 0
        for number in range(20):
            for _ in range(2):
                try:
                    name = f"c{number}"
                    sent = fleet.send(name, "spend", key="k", budget="team-a", limits=caps)
                    jobs.append(await sent)
                except LimitReached:
                    refused += 1
            await asyncio.sleep(0)
        results = [await job for job in jobs]
        budget = fleet.status().budgets["team-a"]
        with pytest.raises(LimitReached, match="team-a"):
            await fleet.send("late", "spend", budget="team-a", limits=Limits(turn=Caps(usd=999.0)))

    asked = [each for each in place.asked if each.last_text == "spend"]
    assert budget.spent == pytest.approx(probe.cost_usd * len(asked))
    assert (budget.spent <= budget.usd, budget.reserved, len(asked) >= 5) == (True, 0.0, True)
    causes = {type(each.cause) for each in results if not each.is_success}
    assert causes <= {LimitReached}
    assert refused + len(jobs) == 40


async def test_a_job_cannot_raise_the_limits_of_its_agent_nor_leave_out_its_budget() -> None:
    place = cli(*[call("Read", file_path="a").using(COSTS)] * 3, say("fine"))
    limits = Limits(turn=Caps(turns=1), fleet_budget="team-a")
    fleet = Fleet(Agent(transport=place, limits=limits), governor=PLENTY)
    async with asyncio.timeout(LIMIT), fleet:
        with pytest.raises(UsageError, match="budget"):
            await fleet.send("c", "go")
        await fleet.budget("team-a", usd=200.0, per="ever")
        await fleet.budget("team-b", usd=200.0, per="ever")
        with pytest.raises(UsageError, match="requires"):
            await fleet.send("c", "go", budget="team-b")
        result = await (await fleet.send("c", "go", limits=Limits(turn=Caps(turns=9))))
        budgets = fleet.status().budgets

    assert isinstance(result.cause, LimitReached)
    assert len(place.asked) < 4
    assert budgets["team-a"].spent > 0
    assert budgets["team-b"].spent == 0


async def test_a_prompt_that_joins_a_turn_is_paid_from_its_budget_or_waits_for_it() -> None:
    place = cli(say("half") + stall(), when("now", *[say("Now.").using(COSTS)] * 2))
    caps = Limits(turn=Caps(usd=0.8))
    async with a_fleet(place) as fleet:
        await fleet.budget("team", usd=1.0, per="ever")
        first = await fleet.send("a", "begin")
        await place.wait_for_stall()
        given: dict[str, Any] = {"when": "now", "budget": "team", "limits": caps}
        joined = [await fleet.send("a", f"now {number}", **given) for number in (1, 2)]
        results = [await each for each in (first, *joined)]
        budget = fleet.status().budgets["team"]

    assert [each.is_success for each in results[1:]] == [True, False]
    assert isinstance(results[2].cause, LimitReached)
    assert budget.reserved == 0.0
    assert budget.spent == pytest.approx(results[1].cost_usd)
    assert len(place.launches) == 1


async def test_the_highest_priority_begins_first_and_the_lowest_last() -> None:
    place = cli(say("half") + stall())
    async with a_fleet(place, slots=1) as fleet:
        jobs = [await fleet.send("a", "begin")]
        await place.wait_for_stall()
        for name, priority in (("lowest", -1000), ("usual", 0), ("highest", 1000)):
            jobs.append(await fleet.send(name, name, priority=priority))
        await place.release()
        for each in jobs:
            await each

    assert [each.last_text for each in place.asked] == ["begin", "highest", "usual", "lowest"]


async def test_a_budget_that_is_raised_lets_those_begin_that_waited_for_it() -> None:
    place = cli(say("half") + stall(), when("second", say("Two.")))
    given: dict[str, Any] = {"budget": "team", "limits": Limits(turn=Caps(usd=0.8))}
    async with a_fleet(place) as fleet:
        await fleet.budget("team", usd=1.0, per="ever")
        first = await fleet.send("a", "first", **given)
        await place.wait_for_stall()
        second = await fleet.send("b", "second", **given)
        await until(fleet, lambda status: status.held == 1)
        words = second.describe()
        await fleet.budget("team", usd=2.0, per="ever")
        text = (await second).text
        await place.release()
        await first

    assert words == "held: budget 'team': other turns have reserved what is left"
    assert text == "Two."


async def test_a_conversation_gets_another_session_for_another_agent_or_other_limits() -> None:
    place = cli()
    agents = {name: Agent(transport=place, model=name) for name in ("opus", "haiku")}
    limits = Limits(turn=Caps(turns=5))
    async with asyncio.timeout(LIMIT), Fleet(agents, governor=PLENTY) as fleet:
        for agent, more in (
            *(("opus", None), ("opus", None), ("haiku", None)),
            *(("haiku", limits), ("haiku", limits), ("haiku", None)),
        ):
            result = await (await fleet.send("a", "hello", agent=agent, limits=more))
            assert result.text == "Echo: hello"
        most = fleet.status()

    models = [[each for each in launch.argv if "model" in str(each)] for launch in place.launches]
    assert len(models) == 4
    assert models[0] != models[1] == models[2] == models[3]
    assert (most.warm, most.free) == (1, 3)


# --- The end -----------------------------------------------------------------------------


async def test_a_parked_turn_gives_its_slot_away_and_goes_on_when_anybody_answers(
    tmp_path: Path,
) -> None:
    place = cli(when("pay", WRITE))
    async with (
        SqliteStore(tmp_path / "work.db") as store,
        a_fleet(place, slots=1, store=store) as fleet,
    ):
        asks = await fleet.send("a", "pay", key="invoice 7")
        behind = await fleet.send("a", "and then")
        async with aclosing(store.inbox().watch()) as watch:
            ask = (await anext(watch)).ask
        other = await (await fleet.send("b", "hello"))
        status = await until(fleet, lambda status: status.parked == 1)
        words = [asks.describe(), behind.describe(), repr(asks)]
        async with SqliteStore(tmp_path / "work.db") as elsewhere:
            await elsewhere.inbox().answer(ask, Allow(), by="ann")
        results = [await each for each in (asks, behind)]
        entries = [each async for each in asks.entries()]

    assert other.text == "Echo: hello"
    assert words == [
        "parked: waits for 1 answer",
        "queued: behind 1 turn of its conversation",
        "Job('a', key='invoice 7', 'parked: waits for 1 answer')",
    ]
    assert status.holds == dict.fromkeys(words[:2], 1)
    assert [each.outcome for each in results] == ["completed"] * 2
    assert [each.details["outcome"] for each in entries if each.kind is Kind.SETTLED] == [
        "parked",
        "completed",
    ]
    assert [each.seq for each in entries] == [*range(1, len(entries) + 1)]


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
async def test_what_still_runs_at_the_end_of_a_drain_is_parked_if_it_is_stored_and_else_stopped(
    tmp_path: Path, *, is_stored: bool
) -> None:
    place = cli(when("long", say("half") + stall()))
    async with SqliteStore(tmp_path / "work.db") as store:
        kept = {"store": store} if is_stored else {}
        async with a_fleet(place, slots=2, **kept) as fleet:
            done = await (await fleet.send("a", "hello"))
            works = await fleet.send("b", "long", key="1")
            await place.wait_for_stall()
            drained = await fleet.drain(0.0)
        outcome = (await works).outcome

    assert done.is_success
    assert (drained.finished, drained.parked, drained.stopped, drained.queued) == (
        *(0, int(is_stored)),
        *(int(not is_stored), 0),
    )
    assert outcome == ("parked" if is_stored else "cancelled")
    assert "'interrupt'" not in str(place.received)


async def test_a_cli_that_cannot_be_started_ahead_is_not_tried_again_and_turns_start_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleet = Fleet(Agent(cli_path="/nowhere/claude"), warm=1, governor=PLENTY)
    async with asyncio.timeout(LIMIT), fleet:
        await until(fleet, lambda _: "started ahead" in caplog.text)
        status = await until(fleet, lambda status: status.starting == 0)
        result = await (await fleet.send(None, "hello"))

    assert (status.ready, status.free) == (0, 4)
    assert caplog.text.count("no CLI could be started ahead; turns start their own") == 1
    assert type(result.cause) is CliNotFound


async def test_a_drain_lets_turns_finish_parks_what_waits_and_begins_nothing(
    tmp_path: Path,
) -> None:
    place = cli(when("pay", WRITE), when("long", say("half") + stall() + say(" whole")))
    async with (
        SqliteStore(tmp_path / "work.db") as store,
        a_fleet(place, slots=2, store=store) as fleet,
    ):
        asks = await fleet.send("a", "pay", key="invoice 7")
        works = await fleet.send("b", "long")
        async with aclosing(store.inbox().watch()) as watch:
            await anext(watch)
        await place.wait_for_stall()
        waits = await fleet.send("c", "never")
        draining = asyncio.ensure_future(fleet.drain(LIMIT))
        await until(fleet, lambda status: status.parked == 1 or status.held == 2)
        with pytest.raises(ChannelClosed, match="drained"):
            await fleet.send("d", "late")
        words = waits.describe()
        await place.release()
        drained = await draining
        open_asks = len(await store.inbox().list())

    assert (drained.finished, drained.parked, drained.stopped, drained.queued) == (1, 1, 0, 1)
    assert ((await works).text, (await asks).outcome, (await waits).outcome) == (
        "half whole",
        "parked",
        "cancelled",
    )
    assert (words, open_asks) == ("held: the fleet is being drained", 1)


class SlowStart:
    """A place whose CLIs start when they are let."""

    def __init__(self, *steps: Any) -> None:
        self.inner = cli(*steps)
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        self.asked.set()
        await self.let.wait()
        return await self.inner.open(launch, receiver)


class SlowSend(Agent):
    """An agent whose sessions send a prompt when they are let."""

    def __init__(self, place: ScriptedCLI) -> None:
        super().__init__(transport=place)
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def open(self, *given: Any, **words: Any) -> Any:  # type: ignore[override]  # as it is awaited
        agent, session = self, await super().open(*given, **words)

        class Slowly:
            def __getattr__(self, name: str) -> Any:
                return getattr(session, name)

            async def send(self, *prompt: Any, **more: Any) -> Any:
                agent.asked.set()
                await agent.let.wait()
                return await session.send(*prompt, **more)

        return Slowly()


async def test_a_turn_that_is_being_sent_when_its_time_is_up_is_left_once_it_is_sent() -> None:
    place = cli(say("half") + stall())
    agent = SlowSend(place)
    async with asyncio.timeout(LIMIT), Fleet(agent, governor=PLENTY) as fleet:
        job = await fleet.send("a", "long")
        await agent.asked.wait()
        draining = asyncio.ensure_future(fleet.drain(0.0))
        await until(fleet, lambda status: status.is_draining)
        await asyncio.sleep(0)
        agent.let.set()
        drained = await draining

    assert (drained.stopped, place.running) == (1, 0)
    assert (await job).outcome == "cancelled"


async def test_a_fleet_that_is_closed_while_a_session_opens_sends_nothing() -> None:
    place = SlowStart(stall())
    async with asyncio.timeout(LIMIT), Fleet(Agent(transport=place), governor=PLENTY) as fleet:
        job = await fleet.send("a", "hello")
        await place.asked.wait()
        closing = asyncio.ensure_future(fleet.aclose())
        await until(fleet, lambda status: status.is_draining)
        place.let.set()
        await closing

    assert ((await job).outcome, place.inner.asked, place.inner.running) == ("cancelled", [], 0)


async def test_a_job_can_be_withdrawn_before_and_interrupted_while_it_runs() -> None:
    place = cli(say("half") + stall(), say("Next."))
    async with a_fleet(place, slots=1) as fleet:
        runs = await fleet.send("a", "begin")
        queued = await fleet.send("a", "behind")
        await place.wait_for_stall()
        withdrawn = await queued.withdraw()
        await runs.interrupt()
        after = await (await fleet.send("a", "after"))
        outcomes = [(await each).outcome for each in (runs, queued)]
        late = await queued.withdraw()

    assert (withdrawn, late, outcomes) == (True, False, ["interrupted", "cancelled"])
    assert after.text == "Next."


async def test_a_conversation_that_cannot_be_opened_is_a_failed_turn_and_the_next_one_runs() -> (
    None
):
    agents = {"default": Agent(transport=cli()), "broken": Agent(cli_path="/nowhere/claude")}
    async with asyncio.timeout(LIMIT), Fleet(agents, slots=1, governor=PLENTY) as fleet:
        broken = await fleet.send("a", "hello", agent="broken")
        fine = await fleet.send("a", "hello")
        failed, result = await broken, await fine
        status = fleet.status()

    assert (failed.outcome, type(failed.cause)) == ("failed", CliNotFound)
    assert (result.text, status.settled, adds_up(status)) == ("Echo: hello", 2, True)


# --- CLIs that are started ahead ---------------------------------------------------------


async def test_a_new_conversation_takes_a_cli_that_is_ready() -> None:
    place = cli()
    async with a_fleet(place, warm=1) as fleet:
        await until(fleet, lambda status: status.ready == 1)
        launches = len(place.launches)
        job = await fleet.send(None, "hello")
        result = await job
        again = await (await fleet.send(job.conversation, "again"))

    assert (launches, result.text, again.text) == (1, "Echo: hello", "Echo: again")
    assert f"--session-id={job.conversation}" in place.launches[0].argv


# --- Bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"agent": "other"}, "agent"),
        ({"key": ""}, "key"),
        ({"conversation": ""}, "conversation"),
        ({"conversation": 7}, "conversation"),
        ({"prompt": " "}, "prompt"),
        ({"priority": 1001}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": "5"}, "priority"),
        ({"budget": "nobody's"}, "budget"),
        ({"limits": {"usd": 1}}, "limits"),
        ({"when": "soon"}, "when"),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_anything_is_stored(
    bad: dict[str, Any], match: str
) -> None:
    async with a_fleet() as fleet:
        given: dict[str, Any] = {"conversation": "a", "prompt": "hello", **bad}
        with pytest.raises(UsageError, match=match):
            await fleet.send(given.pop("conversation"), given.pop("prompt"), **given)

    assert fleet.status().sent == 0


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"slots": 0}, "slots"),
        ({"idle": -1}, "idle"),
        ({"warm": 4}, "warm: got 4, allowed: less than slots"),
        ({"warm": -1}, "warm"),
        ({"store": "sqlite:///srv/work.db"}, "store"),
        ({"governor": 7}, "governor"),
        ({"agents": {}}, "agents"),
        ({"agents": {"default": 7}}, "agents"),
        ({"agents": Agent(transport=cli(), persist_session=False)}, "persist_session"),
    ],
)
def test_a_fleet_that_cannot_work_is_refused(bad: dict[str, Any], match: str) -> None:
    given: dict[str, Any] = {"agents": Agent(transport=cli()), **bad}
    with pytest.raises(UsageError, match=f"^{match}"):
        Fleet(given.pop("agents"), **given)


async def test_a_fleet_that_is_not_open_takes_nothing() -> None:
    with pytest.raises(ChannelClosed, match="not open"):
        await Fleet(Agent(transport=cli())).send("a", "hello")
