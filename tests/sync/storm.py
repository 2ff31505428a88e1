"""Ctrl-c at any moment of small programs: `python -m tests.sync.storm SEED COUNT`.

A timer raises `KeyboardInterrupt` in the main thread, wherever it is. Prints, as JSON, how often it
hit, what was raised instead, what took longer than a second, and which tasks are left.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import signal
import sys
import threading
import time
from typing import Any

from steersman._portal.portal import shared_portal
from steersman.sync import Agent
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI

PATIENCE = 10.0


def add(a: int) -> int:
    """Add nothing."""
    return a


def program(kind: int) -> None:
    """Run one of four programs."""
    steps = (call("mcp__functions__add", a=1), say("a b c d", chunks=4), say("two"))
    agent = Agent(transport=ScriptedCLI(Script(*steps)), functions=[add])
    if kind == 0:
        agent.run("hi")
    elif kind == 1:
        for _ in agent.query("hi"):
            pass
    elif kind == 2:
        with agent.open("key") as session:
            session.run("hi")
    else:
        with agent.session() as session:
            for _ in session.send("hi").text():
                pass
            session.run("again")


def storm(seed: int, count: int) -> dict[str, Any]:
    """Interrupt `count` programs, each at a moment that `seed` draws."""
    drawn = random.Random(seed)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    found: dict[str, Any] = {"hit": 0, "slow": 0, "raised": []}
    program(3)
    for _ in range(count):
        began = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, drawn.uniform(0.0005, 0.03))
            try:
                program(drawn.randrange(4))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            found["hit"] += 1
        except Exception as error:  # noqa: BLE001 - the storm is to find it
            found["raised"].append(repr(error))
        found["slow"] += time.monotonic() - began > 4
    found["left"] = _left()
    return found


def _left() -> list[str]:
    """Return the tasks that do not end; sessions that are being closed have some seconds."""
    deadline = time.monotonic() + PATIENCE
    while True:
        gc.collect()
        left = shared_portal().call(_tasks)
        if not left or time.monotonic() > deadline:
            return left
        threading.Event().wait(0.02)


async def _tasks() -> list[str]:
    mine = asyncio.current_task()
    return [repr(each.get_coro()) for each in asyncio.all_tasks() if each is not mine]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(storm(int(sys.argv[1]), int(sys.argv[2]))))
