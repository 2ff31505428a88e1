from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

PROGRAM = """
    import asyncio, atexit, os, sys
    from steersman import Agent

    def at_exit():
        os.kill(channel.pid, 0)
        print("still there", channel.pid, flush=True)

    atexit.register(at_exit)

    from steersman.ports import Launch
    from steersman.transports.subprocess import SubprocessTransport

    class Receiver:
        def data_received(self, data): ...
        def stderr_received(self, data): ...
        def exited(self, status): ...

    # Left open: the supervisor ends the CLIs of a closed loop.
    loop = asyncio.new_event_loop()
    opening = SubprocessTransport().open(Launch(("sleep", "600")), Receiver())
    channel = loop.run_until_complete(opening)
"""


def test_exit_handlers_of_the_program_run_before_the_cli_is_ended() -> None:
    run = subprocess.run(
        [sys.executable, "-c", dedent(PROGRAM)], capture_output=True, check=True, timeout=60
    )

    *output, pid = run.stdout.decode().split()
    assert output == ["still", "there"]
    assert subprocess.run(["ps", "-p", pid], capture_output=True, check=False).returncode != 0
