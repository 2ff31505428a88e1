"""Runs all rules of the contract on DBOS, at the store that is given: a process has one DBOS.

`python -m tests.fleet.contract_program sqlite:///tmp/fleet.db`
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import place_at
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.ports import Engine, JobSpec, Segment, SegmentEnd
from tests.fleet.engine_contract import LIMIT, RULES, SLOTS, MakeEngine, prefix

QUICK = Rhythm(queue=0.03, ends=0.03, signals=0.05)


async def main(url: str) -> None:
    """Run all rules at once, on one engine: to start one takes longer than a rule."""
    place = place_at(url, create=True)
    segments: dict[str, Segment] = {}

    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        return await segments[spec.conversation.partition(":")[0]](spec, number)

    async with asyncio.timeout(LIMIT), place.store(), DbosEngine(place) as engine:
        await engine.start(segment, worker="w", slots=SLOTS, rhythm=QUICK)

        @asynccontextmanager
        async def make(rule_segment: Segment) -> AsyncGenerator[Engine]:
            segments[prefix.get()] = rule_segment
            yield engine

        async def keep(rule: Callable[[MakeEngine], Awaitable[None]]) -> None:
            prefix.set(rule.__name__)
            await rule(make)
            print(rule.__name__)  # noqa: T201 - read by the test

        async with asyncio.TaskGroup() as tasks:
            for rule in RULES:
                tasks.create_task(keep(rule), name=rule.__name__)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
