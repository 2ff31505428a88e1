"""`python -m steersman.testing --script module:name`: a scripted CLI on stdin and stdout.

The arguments after `--` are the flags that a host gives to the CLI.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from steersman.errors import UsageError
from steersman.testing.scripted.control import VERSION
from steersman.testing.scripted.shared_log import SharedLog
from steersman.testing.scripted.source import load
from steersman.testing.scripted.stdio import SharedStage, launch_of, serve

USAGE = "usage: python -m steersman.testing --script PLACE [--log FILE] [-- FLAGS OF THE CLI]"
MISUSED = 2


def main(arguments: list[str]) -> int:
    """Run the scripted CLI and return its exit status."""
    own: dict[str, str] = {}
    while len(arguments) > 1 and arguments[0] in ("--script", "--log"):
        name, value, *arguments = arguments
        own[name] = value
    flags = arguments[1:] if arguments[:1] == ["--"] else arguments
    if flags in (["--version"], ["-v"]):
        sys.stdout.write(f"{VERSION} (Claude Code)\n")
        return 0
    if "--script" not in own:
        sys.stderr.write(f"{USAGE}\n")
        return MISUSED
    # Ctrl-C in a terminal ends the process like any other program, without a Python traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        cli = load(own["--script"])
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return MISUSED
    stage = cli.stage  # pyright: ignore[reportPrivateUsage] - a friend in the same room
    if "--log" in own:
        stage = SharedStage(stage, SharedLog(Path(own["--log"])))
    return asyncio.run(serve(stage, launch_of(flags, os.environ)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
