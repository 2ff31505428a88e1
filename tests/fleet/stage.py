"""Workers in processes of their own, on the stock CLI and a model that pays each key once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Self

from steersman import Agent
from steersman.fleet import FleetClient, Job
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say, stall

AGENT = """\
import json
from pathlib import Path
from steersman import Agent

options = json.loads((Path(__file__).parent / "options.json").read_text())
agent = Agent(inherit_env=False, **options)
"""
KEY = re.compile(r"\bpay ([\w-]+)")


class Payer(Script):
    """A model that pays what the last prompt says, unless the file says that it is paid.

    So a line is written twice only if a prompt or a call was doubled without the model.
    """

    def __init__(self, paid: Path, *, slow: float = 0.0, tool_takes: float = 0.0) -> None:
        super().__init__()
        self.paid = paid
        self.asked: Counter[str] = Counter()
        """Requests of the main conversation, by key."""
        self.answered: Counter[str] = Counter()
        """Final answers, by key."""
        self._slow = slow
        self._takes = tool_takes
        self._lock = threading.Lock()

    def answer(self, request: ModelRequest) -> Step:
        found = KEY.findall(json.dumps(request.body["messages"]))
        if not found:
            return say("nothing to pay")
        key = found[-1]
        with self._lock:
            self.asked[key] += 1
            if key in self.lines():
                self.answered[key] += 1
                return self._slowly(say(f"paid {key}"))
        sleep = f"; sleep {self._takes}" if self._takes else ""
        return self._slowly(call("Bash", command=f"echo {key} >> {self.paid}{sleep}"))

    def _slowly(self, step: Step) -> Step:
        return stall(self._slow) + step if self._slow else step

    def lines(self) -> list[str]:
        """What the tool has written."""
        return self.paid.read_text().split() if self.paid.exists() else []


class Stage:
    """A folder with the agent of the workers, and where their jobs are."""

    def __init__(self, folder: Path, url: str, agent: Agent) -> None:
        self.folder = folder
        self.url = url
        options = agent.options
        given = {
            "cwd": str(options.cwd),
            "cli_path": str(options.cli_path),
            "env": dict(options.env),
            "allowed_tools": list(options.allowed_tools),
        }
        (folder / "options.json").write_text(json.dumps(given))
        (folder / "fleet_agent.py").write_text(AGENT)

    async def start(self, *more: str, lease: float, slots: int) -> asyncio.subprocess.Process:
        """Start a worker, and return it once it takes jobs."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "steersman.cli", "fleet", "worker", "--create"),
            *("--agent", "fleet_agent:agent", "--lease", str(lease), "--slots", str(slots)),
            *more,
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
                "STEERSMAN_STORE": self.url,
            },
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            first = await process.stdout.readline()
            assert first.startswith(b"worker "), first
        except BaseException:
            await _kill(process)
            raise
        return process


class Workers:
    """The workers of a test; what has not exited in the end is killed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.all: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        for each in self.all:
            await _kill(each)

    async def start(self, count: int, *more: str, lease: float = 3.0, slots: int = 2) -> None:
        """Start workers, and return once they take jobs."""
        starts = [self._stage.start(*more, lease=lease, slots=slots) for _ in range(count)]
        self.all += await asyncio.gather(*starts)

    async def owner(self, client: FleetClient, job: Job) -> asyncio.subprocess.Process:
        """The worker that runs a job."""
        (row,) = await client.jobs(conversation=job.conversation)
        (found,) = [each for each in self.all if f"-{each.pid}-" in row.worker]
        return found

    async def kill_owner(self, client: FleetClient, job: Job) -> bool:
        """Kill the worker that runs a job, and return whether there was one."""
        found = await self.owner(client, job)
        found.kill()
        return True

    def kill(self) -> None:
        """Kill all."""
        for each in self.all:
            each.kill()

    async def end(self) -> None:
        """Drain those that are alive, and wait until they have exited."""
        alive = [each for each in self.all if each.returncode is None]
        for each in alive:
            each.terminate()
        for each in alive:
            await each.wait()


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
