"""A worker whose segment ends the process for jobs with the key `poison`.

`python -m tests.fleet.poison_program URL NAME BEFORE...`: takes over from the workers BEFORE.
"""

from __future__ import annotations

import asyncio
import os
import sys

from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import place_at
from steersman.fleet.ports import JobSpec, SegmentEnd
from tests.fleet.contract_program import QUICK


async def segment(spec: JobSpec, number: int) -> SegmentEnd:
    """End the process, or the segment."""
    del number
    if spec.key == "poison":
        os._exit(9)
    return SegmentEnd(state="settled", result={"outcome": "completed"})


async def main(url: str, name: str, *before: str) -> None:
    """Send both jobs, and run until the second one is settled."""
    place = place_at(url, create=True)
    poison = JobSpec(conversation="c", prompt="x", key="poison")
    after = JobSpec(conversation="c", prompt="x", key="after")
    async with place.store(), DbosEngine(place) as engine:
        await engine.start(segment, worker=name, slots=1, rhythm=QUICK)
        for each in before:
            await engine.recover(each)
        for spec in (poison, after):
            await engine.submit(spec)
        for spec in (poison, after):
            row = await engine.get(spec.id, wait=20.0)
            assert row is not None
            result = row.result or {}
            print(result.get("outcome"), (result.get("cause") or {}).get("code"))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
