"""Limits as a job row has them, and what a job can make of those of its agent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import Agent
from steersman._uuids import uuid_of
from steersman.errors import ChannelClosed, LeaseLost, SteersmanError, UsageError
from steersman.fleet.budgets import budget_of, limits_fields, limits_for, usd_of
from steersman.fleet.governor import Governor
from steersman.fleet.ports import JobSpec
from steersman.fleet.segments import StoreSegments
from steersman.options import Caps, Limits
from steersman.ports import StoredAsk, StoredTurn
from steersman.stores import SqliteStore
from steersman.testing.script import Script, Step, Usage, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

NAMES = ("usd", "tokens", "turns", "tool_calls", "seconds")
CAPS = st.fixed_dictionaries({name: st.none() | st.integers(1, 9) for name in NAMES}).map(
    lambda fields: Caps(**fields)
)
LIMITS = st.builds(
    Limits, turn=CAPS, session=CAPS, warn_at=st.sampled_from((0.2, 0.8, 1.0)), is_hard=st.booleans()
)


def test_limits_are_the_same_after_a_row() -> None:
    limits = Limits(turn=Caps(usd=0.5, tool_calls=3), session=Caps(seconds=60.0), warn_at=0.5)
    fields = json.loads(json.dumps(limits_fields(limits)))

    assert limits_for(Agent(limits=Limits(warn_at=1.0)), fields) == limits
    assert (usd_of(fields), usd_of(None), limits_fields(None)) == (0.5, None, None)


@given(own=LIMITS, other=LIMITS)
def test_a_job_lowers_the_limits_of_its_agent_and_raises_none(own: Limits, other: Limits) -> None:
    found = limits_for(Agent(limits=own), limits_fields(other))

    for caps in ("turn", "session"):
        for name in NAMES:
            mine, theirs = (getattr(getattr(each, caps), name) for each in (own, other))
            both = [each for each in (mine, theirs) if each is not None]
            assert getattr(getattr(found, caps), name) == (min(both) if both else None)
    assert found.warn_at == min(own.warn_at, other.warn_at)
    assert found.is_hard == (own.is_hard or other.is_hard)
    assert limits_for(Agent(limits=own), None) == own


def test_a_required_budget_is_used_and_no_other() -> None:
    strict, free = Agent(limits=Limits(fleet_budget="team-a")), Agent()

    assert [budget_of(strict, each) for each in (None, "team-a")] == ["team-a"] * 2
    assert [budget_of(free, each) for each in (None, "team-b")] == [None, "team-b"]
    with pytest.raises(UsageError, match="'team-a', which Limits"):
        budget_of(strict, "team-b")


async def test_a_worker_keeps_a_stored_job_to_the_limits_and_the_budget_of_its_agent(
    tmp_path: object,
) -> None:
    costs = Usage(input_tokens=100_000, output_tokens=1000)
    place = ScriptedCLI(Script(*[call("Read", file_path="a").using(costs)] * 3, say("done")))
    limits = Limits(turn=Caps(turns=1), fleet_budget="team-a")
    raised = limits_fields(Limits(turn=Caps(turns=9, usd=99.0)))
    async with SqliteStore(f"{tmp_path}/work.db") as store:
        fleet = store.fleet
        await fleet.define("team-a", 200.0, "ever")
        segments = segments_of(Agent(transport=place, limits=limits), store)
        job = JobSpec(conversation="c", prompt="read", key="k", limits=raised)
        end = await segments.run(job, 0)
        other = await segments.run(
            JobSpec(conversation="d", prompt="read", key="k", budget="team-b"), 0
        )
        (budget,) = await fleet.budgets()

    assert end.result is not None
    assert end.result["cause"]["code"] == "limit_reached"
    assert len(place.asked) < 4
    assert budget.spent > 0
    assert other.result is not None
    assert other.result["cause"]["code"] == "usage"


class Away:
    """A store that was away when a session ended: it lacks the asks, and the end of the turn."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._was_opened = False
        self.work = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def inbox(self) -> Any:
        was_opened, self._was_opened = self._was_opened, True
        return self if was_opened else self._store.inbox()

    async def asks_of(self, _session: str, _turn: str) -> list[StoredAsk]:
        return []

    async def unsettled(self, session: str) -> list[StoredTurn]:
        return [StoredTurn(uuid_of(session, "k"), "k", "go")]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (call("Write", file_path="a", content="b"), "an ask is not stored"),
        (say("done"), "the end of the turn is not stored"),
    ],
    ids=["parked", "completed"],
)
async def test_a_segment_is_run_again_unless_the_store_has_what_the_job_goes_by(
    tmp_path: Path, step: Step, why: str
) -> None:
    async with asyncio.timeout(20), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(transport=ScriptedCLI(Script(step)))
        segments = segments_of(agent, cast("SqliteStore", Away(store)))
        end = await segments.run(JobSpec(conversation="c", prompt="go", key="k"), 0)

    assert (end.state, end.why) == ("again", why)


class Stopped:
    """An agent whose sessions do not start."""

    options = Agent().options

    def __init__(self, error: SteersmanError) -> None:
        self._error = error

    async def open(self, _name: str, **_words: Any) -> Any:
        raise self._error


async def test_a_segment_whose_worker_was_stopped_before_its_turn_is_sent_is_run_again(
    tmp_path: Path,
) -> None:
    error = LeaseLost("c", "this process was stopped")
    async with asyncio.timeout(20), SqliteStore(tmp_path / "work.db") as store:
        segments = segments_of(cast("Agent", Stopped(error)), store)
        end = await segments.run(JobSpec(conversation="c", prompt="go", key="k"), 0)

    assert (end.state, end.why) == ("again", error.what)


async def test_a_segment_of_a_worker_that_is_being_drained_opens_nothing_and_is_run_again(
    tmp_path: Path,
) -> None:
    unused = cast("Agent", Stopped(ChannelClosed("nobody opens it")))
    async with asyncio.timeout(20), SqliteStore(tmp_path / "work.db") as store:
        segments = segments_of(unused, store)
        await segments.drain(0.0)
        end = await segments.run(JobSpec(conversation="c", prompt="go", key="k"), 0)

    assert (end.state, end.why) == ("again", "the fleet is being drained")


async def test_a_segment_is_not_run_beside_itself_and_not_without_its_agent(tmp_path: Path) -> None:
    place = ScriptedCLI(Script(stall()))
    spec = JobSpec(conversation="c", prompt="go", key="k")
    async with asyncio.timeout(20), SqliteStore(tmp_path / "work.db") as store:
        segments = segments_of(Agent(transport=place), store)
        running = asyncio.Task(segments.run(spec, 0))
        await place.wait_for_stall()
        beside = await segments.run(spec, 0)
        running.cancel()
        await asyncio.wait({running})
        unknown = await segments.run(replace(spec, agent="clerk"), 0)

    assert (beside.state, beside.why) == ("again", "it has not ended here")
    assert (unknown.state, unknown.after) == ("again", 5.0)
    assert unknown.why == "no worker that has tried it has the agent 'clerk'"
    assert (running.cancelled(), place.running) == (True, 0)


def segments_of(agent: Agent, store: SqliteStore) -> StoreSegments:
    return StoreSegments(
        {"default": agent},
        store,
        slots=1,
        lease=30.0,
        park_after=0.1,
        is_shared=False,
        governor=Governor(memory_free=0),
    )
