"""A job that ends its worker again and again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steersman.errors import PoisonedJob
from steersman.fleet.ports import JobSpec, SegmentEnd
from tests.fleet.memory_engine import memory_engine


async def test_a_poisoned_job_is_settled_as_failed() -> None:
    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        del number
        raise PoisonedJob(spec.key, 3)

    spec = JobSpec(conversation="c", prompt="x", key="k")
    async with memory_engine(segment, 1) as engine:
        row = await engine.submit(spec)
        found = await engine.get(row.id, wait=5.0)

    assert found is not None
    result = found.result or {}
    assert (result["outcome"], result["cause"]["code"]) == ("failed", "poisoned_job")


@pytest.mark.process
@pytest.mark.soak_only
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_job_that_ends_its_worker_three_times_is_poisoned_and_the_next_one_runs(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = f"sqlite://{tmp_path / 'fleet.db'}"
    url = file if kind == "sqlite" else request.getfixturevalue("postgres_url")
    before: list[str] = []
    statuses: list[int] = []
    for number in range(4):
        program = [sys.executable, "-m", "tests.fleet.poison_program", url, f"w{number}", *before]
        found = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
        before.append(f"w{number}")
        statuses.append(found.returncode)

    assert statuses == [9, 9, 9, 0]
    assert found.stdout.split("\n")[:2] == ["failed poisoned_job", "completed None"]
