"""The queue of one process keeps the contract of an engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from steersman.fleet.governor import Governor
from steersman.fleet.holds import memory_hold, rate_hold
from steersman.fleet.ports import Engine, JobSpec, Segment, SegmentEnd
from steersman.fleet.queue import JobQueue
from steersman.fleet.scheduler import Scheduler
from steersman.fleet.slots import Slots
from tests.fleet.engine_contract import LIMIT, RULES, SLOTS, MakeEngine


class PlainRunner:
    """Runs a function as a segment; has no sessions."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    async def run(self, spec: JobSpec, number: int, reports: object) -> SegmentEnd:
        del reports
        return await self._segment(spec, number)

    def keeps(self, conversation: str) -> bool:
        del conversation
        return False

    has_background = keeps

    async def close(self, conversation: str) -> None:
        """Do nothing: there are no sessions."""

    leave = close

    async def prepare(self, agent: str, reports: object) -> str:
        del reports
        raise NotImplementedError(agent)


@asynccontextmanager
async def a_queue(segment: Segment) -> AsyncGenerator[Engine]:
    queue = JobQueue(Slots(PlainRunner(segment), Scheduler(SLOTS)))
    try:
        yield queue
    finally:
        await queue.aclose()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
async def test_the_queue_of_one_process_keeps_the_contract(
    rule: Callable[[MakeEngine], Awaitable[None]],
) -> None:
    async with asyncio.timeout(LIMIT):
        await rule(a_queue)


# --- The slots of a worker ---------------------------------------------------------------


NOON = 1_795_089_600.0
"""Noon of 19 November 2026, UTC."""
MEGABYTE = 1 << 20


async def ran(spec: JobSpec, number: int) -> SegmentEnd:
    del spec, number
    return SegmentEnd(state="settled", result={"outcome": "completed"})


def a_spec(name: str, budget: str | None = None) -> JobSpec:
    return JobSpec(conversation=name, prompt="go", key="k", budget=budget)


def slots_of_a_worker(segment: Segment, governor: Governor) -> Slots:
    scheduler = Scheduler(
        4, quiet=30.0, memory_free=governor.memory_free, idle=0.0, keeps_order=False
    )
    return Slots(PlainRunner(segment), scheduler, governor, lambda: NOON, is_shared=True)


async def test_a_worker_gives_back_the_turns_that_the_rate_limit_holds() -> None:
    async with asyncio.timeout(LIMIT):
        slots = slots_of_a_worker(ran, Governor(memory_free=0))
        free = await slots.run(a_spec("a", budget="of the store"))
        slots.limited("b", NOON + 40.0)
        closed = await slots.run(a_spec("b"))
        slots.limited("c", NOON + 4000.0)
        longest = await slots.run(a_spec("c"))
        await slots.aclose()

    assert free.state == "settled"
    assert (closed.state, closed.why) == ("again", rate_hold(40.0).words(NOON))
    assert 39.0 < closed.after <= 40.0
    assert longest.after == 60.0


async def test_a_worker_gives_back_the_turns_that_memory_holds_also_while_they_wait() -> None:
    free: list[int | None] = [1023 * MEGABYTE]
    first = asyncio.Event()

    async def slow(spec: JobSpec, number: int) -> SegmentEnd:
        await first.wait()
        return await ran(spec, number)

    governor = Governor(memory_free=1 << 30, read_memory=lambda: free[0])
    async with asyncio.timeout(LIMIT):
        slots = slots_of_a_worker(slow, governor)
        held = await slots.run(a_spec("a"))
        free[0] = None
        running = asyncio.ensure_future(slots.run(a_spec("a")))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(slots.run(JobSpec(conversation="b", prompt="", key="1")))
        drained = asyncio.ensure_future(slots.drain(LIMIT))
        given_back = await waiting
        first.set()
        ended = await running
        await drained
        await slots.aclose()

    assert (held.state, held.why) == ("again", memory_hold(1023 * MEGABYTE, 1 << 30).why)
    assert (given_back.state, given_back.why) == ("again", "the fleet is being drained")
    assert ended.state == "settled"
