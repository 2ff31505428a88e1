from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

PROGRAM = """
    import asyncio, atexit, os, sys
    from steersman import Agent

    def say_goodbye():
        os.kill(channel.pid, 0)
        print("still there", channel.pid, flush=True)

    atexit.register(say_goodbye)

    from steersman.ports import Launch
    from steersman.transports.subprocess import SubprocessTransport

    class Nobody:
        def data_received(self, data): ...
        def stderr_received(self, data): ...
        def exited(self, status): ...

    # Left open: a supervisor that finds a loop closed ends what belongs to it.
    loop = asyncio.new_event_loop()
    opening = SubprocessTransport().open(Launch(("sleep", "600")), Nobody())
    channel = loop.run_until_complete(opening)
"""


def test_the_programs_own_goodbyes_find_the_cli_alive_and_then_it_is_ended() -> None:
    run = subprocess.run(
        [sys.executable, "-c", dedent(PROGRAM)], capture_output=True, check=True, timeout=60
    )

    *words, pid = run.stdout.decode().split()
    assert words == ["still", "there"]
    assert subprocess.run(["ps", "-p", pid], capture_output=True, check=False).returncode != 0
