"""However a program ends, and wherever ctrl-c hits it: nothing hangs, and nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from steersman.errors import RequestTimeout
from steersman.journal import Phase
from steersman.sync import Agent
from steersman.testing.script import Script, call
from steersman.testing.scripted.cli import ScriptedCLI

ROOT = Path(__file__).parents[2]
IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
LIMIT = 400.0 if IS_SOAK else 60.0
SEEDS, PROGRAMS = (range(10), 500) if IS_SOAK else (range(1), 60)

HEAD = """
import sys, threading
from steersman.hooks import Hooks, PreToolUse
from steersman.sync import Agent
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

def agent(*steps, **options):
    return Agent(transport=ScriptedCLI(Script(*steps)), **options)
"""

ENDS = {
    "an open session": (
        "session = agent().session().start(); print(session.run('hi').text)",
        (0, "Echo: hi\n"),
    ),
    "a tool that blocks, and a thread that waits": (
        """
begun = threading.Event()

def block() -> str:
    "Block."
    begun.set()
    threading.Event().wait(60)
    return "done"

session = agent(call("mcp__functions__block"), functions=[block]).session().start()
turn = session.send("hi")
threading.Thread(target=turn.result, daemon=True).start()
begun.wait(10)
""",
        (0, ""),
    ),
    "sys.exit in a block": (
        """
with agent().session() as session:
    sys.exit(3)
""",
        (3, ""),
    ),
    "sys.exit in a plain hook": (
        """
hooks = Hooks()
hooks.on(PreToolUse)(lambda event: sys.exit(5))
agent(call("Bash", command="ls"), say("on"), hooks=hooks).run("hi")
""",
        (5, ""),
    ),
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.process
@pytest.mark.parametrize("how", ENDS)
def test_a_program_ends_with(how: str) -> None:
    program, (status, said) = ENDS[how]

    done = run("-c", HEAD + program)

    assert (done.returncode, done.stdout) == (status, said)
    assert "Exception ignored" not in done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_ctrl_c_at_any_moment_leaves_no_task_and_nothing_hangs(seed: int) -> None:
    done = run("-m", "tests.sync.storm", str(seed), str(PROGRAMS))

    found = json.loads(done.stdout)
    assert found.pop("hit") > PROGRAMS / 10
    assert found == {"slow": 0, "raised": [], "left": []}


@pytest.mark.timeout(60)
def test_close_does_not_wait_for_a_loop_that_a_tool_blocks() -> None:
    begun, free = threading.Event(), threading.Event()

    async def block() -> str:
        """Block the event loop."""
        begun.set()
        free.wait(LIMIT)
        return "done"

    transport = ScriptedCLI(Script(call("mcp__functions__block")))
    session = Agent(transport=transport, functions=[block], close_grace=0.05).session().start()
    session.send("hi")
    assert begun.wait(LIMIT)

    with pytest.raises(RequestTimeout, match="blocks the event loop"):
        session.close()

    free.set()
    session.close()
    assert session.phase is Phase.COMPLETED
