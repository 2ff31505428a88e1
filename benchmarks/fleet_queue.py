"""How fast the engine of a fleet over processes is, and what jobs that wait cost: no CLI is run.

python -m benchmarks.fleet_queue sqlite:///tmp/fleet.db
python -m benchmarks.fleet_queue postgresql://user@host/database
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path

from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import place_at
from steersman.fleet.jobs import answered
from steersman.fleet.ports import JobSpec, SegmentEnd

JOBS = 300
WAITING = 500
SLOTS = 8
SECONDS = 20.0


def spec(conversation: str, key: str) -> JobSpec:
    """A job without a meaning."""
    return JobSpec(conversation=conversation, prompt="nothing", key=key)


async def segment(job: JobSpec, number: int) -> SegmentEnd:
    """End at once, or park first."""
    if job.key == "waits" and number == 0:
        return SegmentEnd(state="parked", waits_for=("a",), why="waits for 1 answer")
    return SegmentEnd(state="settled", result={"outcome": "completed"})


def memory() -> float:
    """The memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def used() -> float:
    """The processor time of this process, in seconds."""
    return time.process_time()


async def all_settled(engine: DbosEngine, jobs: list[JobSpec]) -> None:
    """Wait for all jobs."""
    for job in jobs:
        row = await engine.get(job.id, wait=600.0)
        assert row is not None
        assert row.state == "settled"


async def main(url: str) -> None:
    """Print the figures."""
    place = place_at(url, create=True)
    async with place.store(), DbosEngine(place) as sender, DbosEngine(place) as engine:
        await engine.start(segment, worker="w", slots=SLOTS)
        await all_settled(engine, [(await engine.submit(spec("warm", "up"))).spec])
        begun = time.perf_counter()
        jobs = [spec(f"c{number}", "runs") for number in range(JOBS)]
        for job in jobs:
            await sender.submit(job)
        sent = time.perf_counter() - begun
        await all_settled(sender, jobs)
        took = time.perf_counter() - begun
        print(
            f"sent {JOBS / sent:.0f} jobs/s, one after the other; all {JOBS} done in {took:.1f} s"
        )
        before = memory()
        waiting = [spec(f"w{number}", "waits") for number in range(WAITING)]
        for job in waiting:
            await sender.submit(job)
        while len(await sender.list(states=["parked"], most=WAITING)) < WAITING:  # noqa: ASYNC110 - rows
            await asyncio.sleep(0.5)
        await asyncio.sleep(2.0)
        begun, cpu = time.perf_counter(), used()
        await asyncio.sleep(SECONDS)
        share = (used() - cpu) / (time.perf_counter() - begun)
        grown = memory() - before
        print(f"{WAITING} jobs wait: {grown:+.0f} MB, {share:.1%} of a core")
        begun = time.perf_counter()
        for job in waiting:
            await sender.signal(job.id, answered("a"))
        await all_settled(sender, waiting)
        print(f"answered and done in {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
