"""`steersman fleet`: a worker that is watched, has a job cancelled, and is drained, by commands."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.fleet import FleetClient

pytestmark = pytest.mark.process

LIMIT = 60.0
AGENTS = """
from steersman import Agent
from steersman.testing.script import Script, echo, stall, when
from steersman.testing.scripted.cli import ScriptedCLI

payer = Agent(transport=ScriptedCLI(Script(when("wait", stall()), echo)))
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "my_agents.py").write_text(AGENTS)
    return f"sqlite://{tmp_path / 'fleet.db'}"


@pytest.fixture
def worker(url: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker that takes jobs; what is left of it is killed."""
    options = ("--store", url, "--create", "--agent", "my_agents:payer", "--slots", "1")
    started = subprocess.Popen(
        [*FLEET, "worker", *options, "--lease", "10"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path)},
    )
    try:
        assert started.stdout is not None
        assert "takes jobs" in started.stdout.readline()
        yield started
    finally:
        started.kill()
        started.communicate(timeout=LIMIT)


FLEET = (sys.executable, "-m", "steersman.cli", "fleet")


def told(*arguments: str, status: int = 0) -> str:
    """Run a command, and return what it writes: the answer, or why there is none."""
    done = subprocess.run(
        [*FLEET, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


async def sent(url: str) -> str:
    """Send a job that is done at once, and one that does not end; return the id of that one."""
    async with asyncio.timeout(LIMIT), FleetClient(url) as client:
        job = await client.send("customer 7", "pay invoice 7", key="invoice 7")
        assert (await job).text == "Echo: pay invoice 7"
        return (await client.send("customer 8", "wait", key="w")).id


def test_a_worker_is_watched_has_a_job_cancelled_and_is_drained(
    url: str, worker: subprocess.Popen[str]
) -> None:
    endless = asyncio.run(sent(url))

    rows = [json.loads(line) for line in told("jobs", "--store", url, "--json").splitlines()]
    assert {row["key"]: row["outcome"] for row in rows} == {"invoice 7": "completed", "w": None}
    status = json.loads(told("status", "--store", url, "--json"))
    assert [each["is_alive"] for each in status["workers"]] == [True]
    assert "1 slots, agents default" in told("status", "--store", url)

    assert "cancelled" in told("cancel", "--store", url, endless)
    assert "settled" in told("jobs", "--store", url, "--conversation", "customer 8")
    again = told("cancel", "--store", url, endless, status=1)
    assert f"{endless} is settled, or there is no such job" in again
    assert told("drain", "--store", url) == "asked 1 worker to drain\n"
    assert worker.wait(LIMIT) == 0
