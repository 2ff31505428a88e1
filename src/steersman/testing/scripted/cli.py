"""A scripted Claude Code CLI in the same process.

Speaks the whole stream-json control protocol, as recorded from the stock CLI 2.1.325, in
milliseconds. `ScriptedCLI` is a transport: `Agent(transport=ScriptedCLI(script))`.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman._json import JsonDict
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script
from steersman.testing.scripted.process import ScriptedProcess
from steersman.testing.scripted.stage import FakeTool, Faults, Stage, StartPhase, Subagent
from steersman.transports.memory import MemoryTransport

__all__ = ["FakeTool", "Faults", "ScriptedCLI", "StartPhase", "Subagent"]

PATIENCE = 5.0
"""Default timeout of the waits, in seconds."""


class ScriptedCLI:
    """Plays a script behind the CLI's protocol; every session gets its own scripted process.

    Tools of the host are really called. Built-in tools are replaced by `tools`, or echo their
    input. Without a script the model echoes the prompt.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        tools: Mapping[str, FakeTool | Subagent] | None = None,
        faults: Faults | None = None,
        checks_output: bool = True,
        retry_pace: float = 0.0,
    ) -> None:
        """Create a scripted CLI.

        With `checks_output=False`, structured output is not checked against its schema.
        `retry_pace` is the share of the delay between two API requests that is really waited.
        """
        self.script = script or Script()
        self.launches: list[Launch] = []
        """The launches, one for each session."""
        self.exits: list[int] = []
        """The exit statuses of processes that ended by themselves."""
        self._stage = Stage(
            self.script,
            tools or {},
            faults or Faults(),
            checks_output=checks_output,
            retry_pace=retry_pace,
        )
        self._processes: list[ScriptedProcess] = []

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Start a scripted process."""
        process = ScriptedProcess(self._stage, self.exits.append)
        self.launches.append(launch)
        self._processes.append(process)
        return await MemoryTransport(process).open(launch, receiver)

    @property
    def stage(self) -> Stage:
        """The state that the processes share."""
        return self._stage

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests to the model so far."""
        return self._stage.asked

    @property
    def received(self) -> list[JsonDict]:
        """The messages that hosts have written so far."""
        return self._stage.received

    @property
    def running(self) -> int:
        """The number of processes that have not exited."""
        return sum(not process.has_exited for process in self._processes)

    async def wait_for_request(self, count: int = 1, timeout: float = PATIENCE) -> ModelRequest:
        """Wait for request number `count` to the model and return it. Raises `TimeoutError`."""
        return await self._stage.wait_for_request(count, timeout)

    async def wait_for_stall(self, timeout: float = PATIENCE) -> None:
        """Wait until the model stalls. Raises `TimeoutError`."""
        await self._stage.wait_for_stall(timeout)

    async def release(self, timeout: float = PATIENCE) -> None:
        """Wait until the model stalls, then end all stalls. Raises `TimeoutError`."""
        await self._stage.wait_for_stall(timeout)
        self._stage.release()

    def exit(self, status: int = 1, stderr: str = "") -> None:
        """End every process now, as if it had crashed."""
        for process in self._processes:
            process.exit(status, stderr)
