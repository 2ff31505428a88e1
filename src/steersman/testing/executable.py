"""A scripted CLI as a program, for `cli_path=`.

`executable(script, directory)` writes a launcher that runs `python -m steersman.testing`, which
speaks the protocol on stdin and stdout as the stock CLI does. `Executable` is its path, with
methods to look at the requests to the model.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path, PosixPath
from types import ModuleType

from steersman import _json
from steersman.testing.request import ModelRequest
from steersman.testing.script import Answer, Scene, Script, Step
from steersman.testing.scripted.shared_log import SharedLog
from steersman.testing.scripted.source import anchored, load, rewound, script_to_json

__all__ = ["Executable", "executable"]

PATIENCE = 10.0
"""Default timeout of the waits, in seconds."""
POLL = 0.005
"""Seconds between two looks into the shared log."""

LAUNCHER = """\
#!/bin/sh
# A scripted Claude Code CLI, made by steersman.testing.
PYTHONPATH={path} exec {python} -P -m steersman.testing \\
    --script {script} --log {shared_log} -- "$@"
"""


class Executable(PosixPath):
    """The path of a scripted CLI; all processes that run it share one script."""

    @property
    def minutes(self) -> Path:
        """The path of the log that the processes write."""
        return Path(f"{self}.shared_log")

    @property
    def script(self) -> str:
        """The place from which the processes load the script."""
        return Path(f"{self}.script").read_text(encoding="utf-8")

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests to the model so far, from all processes."""
        return SharedLog(self.minutes).asked

    async def wait_for_request(self, count: int = 1, timeout: float = PATIENCE) -> ModelRequest:
        """Wait for request number `count` to the model and return it. Raises `TimeoutError`."""
        await _until(lambda: len(self.asked) >= count, timeout, f"{count} requests to the model")
        return self.asked[count - 1]

    async def release(self, timeout: float = PATIENCE) -> None:
        """Wait until the model stalls, then end all stalls. Raises `TimeoutError`."""
        shared_log = SharedLog(self.minutes)
        await _until(lambda: shared_log.stalled > 0, timeout, "a stall")
        shared_log.write({"release": True})

    def assert_complete(self) -> None:
        """Raise `AssertionError` if steps were not reached or the script itself failed."""
        script = rewound(load(self.script).script)
        shared_log = SharedLog(self.minutes)
        for request in shared_log.asked:
            script.pass_over(request)
        if complaints := [*shared_log.surprises, *script.not_reached]:
            raise AssertionError("; ".join(complaints))


def executable(
    script: str | Script | Answer | Scene | list[Answer | Scene],
    directory: str | Path,
    *,
    name: str = "claude",
    python: str = sys.executable,
) -> Executable:
    """Write a program into `directory` that plays `script` as the Claude Code CLI would.

    Steps without functions are given directly. A script with functions, or a `ScriptedCLI` with
    tools and faults, is given by its place, because another process must load it:
    `"module:name"` or `"path/to/file.py:name"`. The name may be that of a function that returns
    the script. Raises `UsageError`.
    """
    program = Executable(directory, name).absolute()
    place = anchored(script) if isinstance(script, str) else _write_steps(script, program)
    load(place)
    Path(f"{program}.script").write_text(place, encoding="utf-8")
    program.minutes.write_bytes(b"")
    program.write_text(_launcher(place, program.minutes, python), encoding="utf-8")
    program.chmod(0o755)
    return program


def _write_steps(script: Script | Answer | Scene | list[Answer | Scene], program: Path) -> str:
    if isinstance(script, Step | Scene) or callable(script):
        script = [script]
    if not isinstance(script, Script):
        script = Script(*script, strict=True)
    place = f"{program}.json"
    Path(place).write_bytes(_json.dumps({"strict": script.strict, "steps": script_to_json(script)}))
    return place


def _launcher(place: str, shared_log: Path, python: str) -> str:
    path = ":".join(str(Path(each).absolute()) for each in sys.path)
    fields = {"path": path, "python": python, "script": place, "shared_log": str(shared_log)}
    return LAUNCHER.format_map({name: shlex.quote(text) for name, text in fields.items()})


async def _until(is_so: Callable[[], bool], timeout: float, what: str) -> None:
    try:
        async with asyncio.timeout(timeout):
            # Another process writes the log, so there is no event to wait for.
            while not is_so():  # noqa: ASYNC110
                await asyncio.sleep(POLL)
    except TimeoutError:
        raise TimeoutError(f"{what} did not come within {timeout:g} s") from None


class _CallableModule(ModuleType):
    """`steersman.testing.executable` is the function, or this module once that was imported."""

    __call__ = staticmethod(executable)


sys.modules[__name__].__class__ = _CallableModule
