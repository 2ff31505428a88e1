"""Host and guard killed together, at any time: two seconds later no process is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import steersman
from steersman.transports import kernel

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not kernel.IS_LINUX, reason="there the tools of a killed guard run on"),
]

KILLS = 50 if os.environ.get("STEERSMAN_SOAK") else 3
LONGEST = 0.25
"""Seconds from the start of the guard to the kill. The tools run after a tenth of that."""

HOST = """
import asyncio, sys
from steersman.ports import Launch
from steersman.testing.contracts.transports import RecordingReceiver
from steersman.transports.subprocess import SubprocessTransport

CLI = '''
while :; do setsid sleep $1 & (setsid sleep $1 &) ; sleep 0.01; done
'''

async def main():
    launch = Launch(("/bin/sh", "-c", CLI, "sh", sys.argv[1]), env={"PATH": "/usr/bin:/bin"})
    print(flush=True)
    channel = await SubprocessTransport().open(launch, RecordingReceiver())
    await asyncio.sleep(60)

asyncio.run(main())
"""


def holders(token: str) -> list[int]:
    """Return the processes that run, and have `token` on their command line."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if token.encode() in words:
            found.append(int(place.name))
    return found


def guards_of(host: int) -> list[int]:
    """Return the guard server and its guard, as far as they have been started."""
    rows = kernel.below(host)
    server = [row[0] for row in rows if row[1] == host]
    return server + [row[0] for row in rows if row[1] in server]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", ["server", "guard"])
def test_a_host_killed_together_with_its_guard_or_its_server_leaves_nothing(which: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(steersman.__file__).parents[1])}
    for number in range(KILLS):
        chance = random.Random(number)
        # A length of sleep that no other process has: also the name of the tree.
        token = f"{600 + chance.random()}{os.getpid()}{number}"
        with subprocess.Popen(
            [sys.executable, "-c", HOST, token], env=environment, stdout=subprocess.PIPE
        ) as host:
            assert host.stdout is not None
            host.stdout.readline()
            time.sleep(chance.random() * LONGEST)
            guards = guards_of(host.pid)
            victims = [host.pid, *(guards[:1] if which == "server" else guards[1:2])]
            chance.shuffle(victims)
            for each in victims:
                kernel.send_signal(each, signal.SIGKILL)

        deadline = time.monotonic() + 2
        while holders(token) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert holders(token) == [], number
