"""The same program of synchronous code runs wherever Python runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import ChannelClosed
from steersman.sync import Agent
from steersman.testing.scripted.cli import ScriptedCLI
from tests.sync.scenario import EXPECTED, scenario

ROOT = Path(__file__).parents[2]
LIMIT = 30.0

pytestmark = pytest.mark.timeout(60)


def test_it_runs_in_this_thread() -> None:
    assert scenario() == EXPECTED


@pytest.mark.process
def test_it_runs_as_a_script_that_ends_by_itself_and_says_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "tests.sync.scenario"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == EXPECTED


@pytest.mark.process
def test_it_runs_in_a_notebook(tmp_path: Path) -> None:
    """In a kernel as Jupyter starts it: an event loop runs in the thread of the cells."""
    kernels = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    manager = kernels.KernelManager(connection_file=str(tmp_path / "kernel.json"))
    own = {"IPYTHONDIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    manager.start_kernel(cwd=str(ROOT), env={**os.environ, **own})
    client = manager.blocking_client()
    client.start_channels()
    said: list[str] = []
    try:
        client.wait_for_ready(timeout=LIMIT)
        code = (
            "import asyncio, json; asyncio.get_running_loop()\n"
            "from tests.sync.scenario import scenario; print(json.dumps(scenario()))"
        )

        def hear(message: dict[str, Any]) -> None:
            said.extend(_printed(message))

        client.execute_interactive(code, timeout=LIMIT, output_hook=hear)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)

    assert json.loads("".join(said)) == EXPECTED


def _printed(message: dict[str, Any]) -> list[str]:
    """Return the output of a cell, or how it has failed."""
    content = message["content"]
    return [str(content[name]) for name in ("text", "traceback") if name in content]


def test_it_runs_in_four_threads_at_once() -> None:
    together = threading.Barrier(4)

    def run() -> dict[str, object]:
        together.wait(LIMIT)
        return scenario()

    with ThreadPoolExecutor(4) as threads:
        found = [each.result(LIMIT) for each in [threads.submit(run) for _ in range(4)]]

    assert found == [EXPECTED] * 4


async def test_it_runs_where_an_event_loop_runs() -> None:
    asyncio.get_running_loop()

    assert scenario() == EXPECTED


def test_it_runs_under_trio() -> None:
    trio = pytest.importorskip("trio")

    async def main() -> list[dict[str, object]]:
        here = scenario()
        return [here, await trio.to_thread.run_sync(scenario)]

    assert trio.run(main) == [EXPECTED] * 2


CLOSES_AT_THE_END = """
import threading
from steersman.sync import Agent
from steersman.testing.scripted.cli import ScriptedCLI

session = Agent(transport=ScriptedCLI()).session().start()
print(session.run("one").text)
has_begun = threading.Event()

def close():
    has_begun.set()
    session.close()

threading.Thread(target=close, daemon=True).start()
has_begun.wait()
"""

FORKS = """
import asyncio, os, sys
from steersman import Agent
from steersman.testing.scripted.cli import ScriptedCLI

async def main():
    async with Agent(transport=ScriptedCLI()).session() as session:
        print((await (await session.send("one"))).text, flush=True)
        if os.fork() == 0:
            session.abandon()
            sys.exit(0)
        print(os.wait()[1], flush=True)
        print((await (await session.send("two"))).text, flush=True)

asyncio.run(main())
"""


def program(text: str) -> tuple[int, str, str]:
    """How a program ends, and what it prints and complains about."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.process
def test_a_program_that_ends_while_a_thread_closes_a_session_says_nothing() -> None:
    assert program(CLOSES_AT_THE_END) == (0, "Echo: one\n", "")


@pytest.mark.process
def test_a_forked_child_that_leaves_the_block_of_its_parents_session_closes_nothing() -> None:
    assert program(FORKS) == (0, "Echo: one\n0\nEcho: two\n", "")


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_runs_after_fork_and_an_inherited_session_says_that_it_is_closed() -> None:
    """The parent's session goes on; the child has an event loop of its own."""
    reader, writer = os.pipe()
    with Agent(transport=ScriptedCLI()).session() as session:
        session.run("one")
        child = os.fork()
        if child == 0:
            _tell(writer, lambda: session.run("one"), session.close, scenario)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            told = json.loads(pipe.read())
        _, status = os.waitpid(child, 0)
        after = session.run("two").text

    assert status == 0
    assert told[0] == [
        "ChannelClosed",
        "this was opened before fork(), and belongs to the parent process",
    ]
    assert told[1:] == [["result", None], ["result", EXPECTED]]
    assert after == "Echo: two"


def _tell(writer: int, *functions: Callable[[], object]) -> None:
    """In the child: write what each function returns or raises, and exit at once."""
    status = 1
    try:
        told: list[object] = []
        for each in functions:
            try:
                told.append(["result", each()])
            except ChannelClosed as error:
                told.append([type(error).__name__, error.what])
        os.write(writer, json.dumps(told).encode())
        status = 0
    finally:
        os._exit(status)
