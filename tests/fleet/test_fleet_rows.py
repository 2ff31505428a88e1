"""The rows of workers and budgets, in SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman.stores import PostgresStore, SqliteStore
from steersman.stores._sql.fleet import FleetTable, StoredBudget, WorkerRow

pytestmark = pytest.mark.process


@asynccontextmanager
async def rows(
    kind: str, request: pytest.FixtureRequest, path: Path, count: int = 1
) -> AsyncGenerator[list[FleetTable]]:
    """The rows as several processes see them."""
    url = None if kind == "sqlite" else request.getfixturevalue("postgres_url")
    stores = [
        SqliteStore(path / "f.db") if url is None else PostgresStore(url) for _ in range(count)
    ]
    async with asyncio.timeout(30):
        yield [each.fleet for each in stores]
        for each in stores:
            await each.aclose()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_worker_is_alive_as_long_as_it_renews_its_lease(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with rows(kind, request, tmp_path) as (fleet,):
        await fleet.join(WorkerRow("a", "m", 7, 4, ("default",)), 60.0)
        await fleet.join(WorkerRow("b", "m", 8, 4), 0.0)
        states = [await fleet.renew(name, 60.0) for name in ("a", "b", "c")]
        asked = await fleet.set_state(None, "asked")
        found = {each.worker: each for each in await fleet.workers()}
        await fleet.leave("a")

        assert states == ["working", None, None]
        assert asked == 1
        assert (found["a"].state, found["a"].is_alive, found["b"].is_alive) == (
            "asked",
            True,
            False,
        )
        assert (found["a"].agents, found["a"].pid, found["a"].slots) == (("default",), 7, 4)
        assert [each.worker for each in await fleet.workers()] == ["b"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_what_fails_in_a_worker_is_seen_until_it_renews_its_lease_without_it(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with rows(kind, request, tmp_path) as (fleet,):
        await fleet.join(WorkerRow("a", "m", 7, 4), 60.0)
        stored: list[tuple[str, ...]] = []
        for faults in (["look: the disk\nis full", "signals: away"], []):
            await fleet.renew("a", 60.0, faults)
            (row,) = await fleet.workers()
            stored.append(row.faults)

    assert stored == [("look: the disk is full", "signals: away"), ()]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_three_workers_with_doubled_calls_never_spend_more_than_the_budget(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with rows(kind, request, tmp_path, 3) as workers:
        await workers[0].define("team", 1.0, "day")

        async def turn(worker: FleetTable, job: str) -> str:
            twice = [worker.reserve("team", job, 0.25), workers[0].reserve("team", job, 0.25)]
            said = set(await asyncio.gather(*twice))
            if said == {"reserved"}:
                ends = await asyncio.gather(*(each.settle(job, 0.25) for each in workers))
                assert sum(ends) == 1
            return "+".join(sorted(said))

        jobs = [turn(workers[number % 3], f"job {number}") for number in range(9)]
        said = await asyncio.gather(*jobs)
        after = await workers[1].budgets()

        assert said.count("reserved") == 4
        assert after == [StoredBudget("team", 1.0, "day", 1.0, 0.0)]
        assert await workers[2].reserve("team", "more", None) == "out"
        assert await workers[2].reserve("none", "more", None) == "unknown"


async def test_a_turn_waits_while_others_have_reserved_what_it_needs(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with rows("sqlite", request, tmp_path) as (fleet,):
        await fleet.define("team", 1.0, "ever")
        first = await fleet.reserve("team", "a", 0.75)
        second = await fleet.reserve("team", "b", 0.5)
        await fleet.settle("a", 0.25)
        third = await fleet.reserve("team", "b", 0.5)
        # Without an amount, the mean of past turns: 0.25, which is just left.
        fourth = await fleet.reserve("team", "c", None)

        assert (first, second, third, fourth) == ("reserved", "wait", "reserved", "reserved")
