"""`steersman.sync` on the stock CLI: a script, ctrl-c in it, and a program that just ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say, stall
from tests.live.staging import LIMIT, vanished

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

HEAD = """
import json, sys
from steersman.sync import Agent

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

agent = Agent(functions=[add], **json.loads(sys.argv[1]))
"""

MAIN = """
with agent.session() as session:
    turn = session.send("What is 2 + 3?")
    for chunk in turn.text():
        print(chunk, end="|")
    result = turn.result(timeout=60)
print(result.outcome, session.phase)
"""

WAITS = """
with agent.session() as session:
    turn = session.send("work")
    for chunk in turn.text():
        print(chunk, flush=True)
"""

LEAVES = """
session = agent.session().start()
for chunk in session.send("work").text():
    print(chunk, flush=True)
    break
"""


def start(box: CliSandbox, cli: Path, url: str, program: str) -> subprocess.Popen[str]:
    options = {
        "cwd": str(box.project),
        "cli_path": str(cli),
        "inherit_env": False,
        "env": box.env(url),
    }
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + program, json.dumps(options)],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_script_streams_calls_its_function_and_ends(sandbox: CliSandbox, cli: Path) -> None:
    script = Script(call("mcp__functions__add", a=2, b=3), say("It is 5.", chunks=3), strict=True)
    with ScriptedModel(script) as model:
        said, complained = start(sandbox, cli, model.url, MAIN).communicate(timeout=LIMIT)

    assert complained == ""
    assert said.endswith("|completed completed\n")
    assert said.replace("|", "").startswith("It is 5.")
    script.assert_complete()


@pytest.mark.parametrize(
    ("program", "ends"),
    [pytest.param(WAITS, "KeyboardInterrupt", id="ctrl-c"), pytest.param(LEAVES, "", id="exit")],
)
async def test_no_process_is_left_by_ctrl_c_and_by_a_program_that_just_ends(
    sandbox: CliSandbox, cli: Path, program: str, ends: str
) -> None:
    with ScriptedModel(Script(say("half") + stall())) as model:
        host = start(sandbox, cli, model.url, program)
        assert host.stdout is not None
        async with asyncio.timeout(LIMIT):
            said = await asyncio.to_thread(host.stdout.readline)
            if ends:
                host.send_signal(signal.SIGINT)
            _, complained = await asyncio.to_thread(host.communicate, timeout=LIMIT)
        left = await vanished(sandbox.root, within=1)

    assert said == "half\n"
    assert complained.splitlines()[-1:] == [ends][: len(ends)]
    assert host.returncode == (-signal.SIGINT if ends else 0)
    assert left == {}


FORKS = """
import asyncio, json, os, sys
from steersman import Agent

async def main():
    async with Agent(**json.loads(sys.argv[1])).session() as session:
        print((await (await session.send("go"))).text, flush=True)
        is_child = os.fork() == 0
        if not is_child:
            print(os.wait()[1], flush=True)
            print((await (await session.send("go on"))).text, session.restarts, flush=True)
    if is_child:
        os._exit(0)

asyncio.run(main())
"""


async def test_a_forked_child_that_leaves_the_block_of_its_parent_ends_no_cli(
    sandbox: CliSandbox, cli: Path
) -> None:
    with ScriptedModel(Script(say("One."), say("Two."))) as model:
        host = start(sandbox, cli, model.url, FORKS)
        said, complained = await asyncio.to_thread(host.communicate, timeout=LIMIT)
        left = await vanished(sandbox.root, within=1)

    assert (said, complained) == ("One.\n0\nTwo. 0\n", "")
    assert left == {}
