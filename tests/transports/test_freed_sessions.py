"""A session that was closed is freed, with its journal, its channel and its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import steersman

pytestmark = pytest.mark.soak

SESSIONS = 1000 if os.environ.get("STEERSMAN_SOAK") else 10
LARGEST_GROWTH = 2 * 1024
"""KiB. The journals of a thousand sessions that are not freed take a hundred times as much.

Closed sessions wait for the garbage collector, which runs here after every ten of them: how many
wait in another program depends on what else it does.
"""

CLI = r"""#!/bin/sh
read -r line
id=${line#*'"request_id":"'}
id=${id%%'"'*}
cat "$0.output"
printf '{"type":"control_response","response":%s"request_id":"%s","response":{}}}\n' \
    '{"subtype":"success",' "$id"
cat > /dev/null
"""

PROGRAM = """
import asyncio, gc, json, os, sys, weakref
from pathlib import Path
from steersman import Agent
from steersman._session.link import CliLink
from steersman._session.session import Session
from steersman.transports.guarded_process import GuardedProcess
from steersman.transports.subprocess import SubprocessChannel

KINDS = (Session, CliLink, SubprocessChannel, GuardedProcess)
cli, count = sys.argv[1], int(sys.argv[2])

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024

async def use(count):
    for number in range(count):
        if number % 10 == 0:
            gc.collect()
        async with asyncio.timeout(20):
            async with Agent(cli_path=cli, inherit_env=["PATH"]).session():
                pass

async def main():
    # The first ones load modules and fill caches.
    await use(max(5, count // 10))
    gc.collect()
    before = resident()
    await use(count)
    gc.collect()
    # The thread that owns the processes lets go of the last one a moment after it was reaped.
    for _ in range(500):
        alive = [type(each).__name__ for each in gc.get_objects() if isinstance(each, KINDS)]
        if not alive:
            break
        await asyncio.sleep(0.01)
        gc.collect()
    print(json.dumps({"alive": alive, "grown": resident() - before}))

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.timeout(1200)
def test_closed_sessions_leave_no_object_and_no_memory(tmp_path: Path) -> None:
    cli = tmp_path / "claude"
    cli.write_text(CLI)
    cli.chmod(0o755)
    Path(f"{cli}.output").write_bytes(b'{"type":"system","text":"%s"}\n' % (b"x" * 10_000) * 10)
    environment = {**os.environ, "PYTHONPATH": str(Path(steersman.__file__).parents[1])}

    output = subprocess.check_output(
        [sys.executable, "-c", PROGRAM, str(cli), str(SESSIONS)], env=environment, timeout=1000
    )

    found = json.loads(output)
    assert found["alive"] == []
    assert found["grown"] < LARGEST_GROWTH
