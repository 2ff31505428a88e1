"""Every engine keeps the contract of the port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import place_at
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.ports import Engine, JobSpec, Segment, SegmentEnd
from tests.fleet.engine_contract import LIMIT, RULES, SLOTS, MakeEngine, prefix
from tests.fleet.memory_engine import memory_engine

Rule = Callable[[MakeEngine], Awaitable[None]]

QUICK = Rhythm(queue=0.03, ends=0.03, signals=0.05)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
async def test_the_engine_in_memory_keeps_the_contract(rule: Rule) -> None:
    def make(segment: Segment) -> AbstractAsyncContextManager[Engine]:
        return memory_engine(segment, SLOTS)

    async with asyncio.timeout(LIMIT):
        await rule(make)


@pytest.mark.process
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_dbos_keeps_the_contract(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = f"sqlite://{tmp_path / 'fleet.db'}"
    url = file if kind == "sqlite" else request.getfixturevalue("postgres_url")
    place = place_at(url, create=True)
    segments: dict[str, Segment] = {}

    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        return await segments[spec.conversation.partition(":")[0]](spec, number)

    async with asyncio.timeout(2 * LIMIT), place.store(), DbosEngine(place) as engine:
        await engine.start(segment, worker="w", slots=SLOTS, rhythm=QUICK)

        @asynccontextmanager
        async def make(rule_segment: Segment) -> AsyncGenerator[Engine]:
            segments[prefix.get()] = rule_segment
            yield engine

        async def keep(rule: Rule) -> None:
            prefix.set(rule.__name__)
            await rule(make)

        # One engine, and all at once: to start one takes longer than a rule.
        async with asyncio.TaskGroup() as tasks:
            for rule in RULES:
                tasks.create_task(keep(rule), name=rule.__name__)
