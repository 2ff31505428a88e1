"""The queue of one process keeps the contract of an engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from steersman.fleet.ports import Engine, JobSpec, Segment, SegmentEnd
from steersman.fleet.queue import JobQueue
from steersman.fleet.scheduler import Scheduler
from steersman.fleet.slots import Slots
from tests.fleet.engine_contract import LIMIT, RULES, SLOTS, MakeEngine


class PlainRunner:
    """Runs a function as a segment; has no sessions."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    async def run(self, spec: JobSpec, number: int) -> SegmentEnd:
        return await self._segment(spec, number)

    def keeps(self, conversation: str) -> bool:
        del conversation
        return False

    has_background = keeps

    async def close(self, conversation: str) -> None:
        """Do nothing: there are no sessions."""

    leave = close

    async def prepare(self, agent: str) -> str:
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
