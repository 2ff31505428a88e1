"""`python -m steersman.testing --script module:name`: a scripted CLI on stdin and stdout.

The arguments after `--` are the flags that a host gives to the CLI.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from steersman.errors import UsageError
from steersman.ports import FileArgument, Launch
from steersman.testing.request import ModelRequest
from steersman.testing.script import Stall, Step
from steersman.testing.scripted.control import VERSION
from steersman.testing.scripted.process import ScriptedProcess
from steersman.testing.scripted.shared_log import SharedLog
from steersman.testing.scripted.source import load
from steersman.testing.scripted.stage import Stage
from steersman.transports.memory import Wire

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


POLL = 0.01
"""Seconds between two checks of a stall for a release."""

CHUNK = 256 * 1024
FILES = ("--mcp-config", "--settings")
"""Flags whose value may be the path of a file."""


class SharedStage(Stage):
    """A stage whose script is played by several processes together, through a shared log."""

    def __init__(self, own: Stage, log: SharedLog) -> None:
        super().__init__(
            own.script,
            own.tools,
            own.faults,
            checks_output=own.checks_output,
            retry_pace=own.retry_pace,
        )
        self._log = log

    def answer(self, request: ModelRequest) -> Step:
        """Skip the steps that other processes have used, then answer."""
        with self._log.locked():
            for note in self._log.unread():
                if "asked" in note:
                    self.script.pass_over(ModelRequest(note["asked"]))
            self.script.surprises.clear()
            step = super().answer(request)
            self._log.write({"asked": request.body, "surprises": self.script.surprises})
            self._log.unread()
        return step

    async def stall(self, stall: Stall) -> None:
        """Wait for the time of the stall, or for a release in the log."""
        before = self._log.releases
        watching = asyncio.Task(self._watch(before))
        self._log.write({"stalled": 1})
        try:
            await super().stall(stall)
        finally:
            watching.cancel()
            self._log.write({"stalled": -1})

    async def _watch(self, before: int) -> None:
        # The test is another process, so there is no event to wait for.
        while self._log.releases == before:  # noqa: ASYNC110
            await asyncio.sleep(POLL)
        self.release()


def launch_of(arguments: Sequence[str], environ: Mapping[str, str]) -> Launch:
    """Return the launch of this process, with the contents of files named on the command line."""
    argv: list[str | FileArgument] = ["claude"]
    files: dict[str, bytes] = {}
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if flag in FILES and Path(value).is_file():
            files[flag] = Path(value).read_bytes()
            argv.append(FileArgument(f"{flag}=", flag))
        else:
            argv.append(argument)
    return Launch(tuple(argv), dict(environ), str(Path.cwd()), files=files)


async def serve(stage: Stage, launch: Launch) -> int:
    """Run the scripted CLI until it exits, and return the exit status."""
    status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    process = ScriptedProcess(stage, lambda _: None)
    process.connected(launch, _StdioWire(status))
    _Stdin(process).watch()
    return await status


class _StdioWire(Wire):
    """Writes to stdout and stderr; the CLI exits if the host has closed the pipe."""

    def __init__(self, status: asyncio.Future[int]) -> None:
        self._status = status

    def write(self, data: bytes) -> None:
        self._write(1, data)

    def write_stderr(self, data: bytes) -> None:
        self._write(2, data)

    def exit(self, status: int) -> None:
        if not self._status.done():
            self._status.set_result(status)

    def _write(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except BrokenPipeError:
            self.exit(1)


class _Stdin:
    """Reads stdin when data arrives."""

    def __init__(self, process: ScriptedProcess) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()

    def watch(self) -> None:
        try:
            self._loop.add_reader(0, self._read)
        except PermissionError:
            # Stdin is a regular file, which is always ready and cannot be watched.
            while self._read():
                pass

    def _read(self) -> bool:
        data = os.read(0, CHUNK)
        if data:
            self._process.data_received(data)
        else:
            self._loop.remove_reader(0)
            self._process.input_ended()
        return bool(data)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
