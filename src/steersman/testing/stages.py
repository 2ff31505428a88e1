"""One interface to three ways to play a script: in memory, in a process, on the stock CLI.

A stage creates agents whose CLI plays the script, and gives access to the requests to the model.
A script behaves the same on all stages.
"""
# ruff: noqa: D102 - the port's docstring is the contract

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from steersman.agent import Agent
from steersman.options.fields import Options, options_from
from steersman.ports import Transport
from steersman.testing.executable import executable
from steersman.testing.model import ScriptedModel
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script
from steersman.testing.scripted.cli import ScriptedCLI

if TYPE_CHECKING:
    from typing import Unpack

    from steersman.options.keywords import OptionKwargs

PATIENCE = 10.0
"""Default timeout of the waits, in seconds."""


class Stage(Protocol):
    """A place where a script is played."""

    @property
    def project(self) -> Path:
        """The working directory of the agents."""
        ...

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests of the conversation and its subagents so far."""
        ...

    def agent(self, options: Options | None = None, **words: Unpack[OptionKwargs]) -> StagedAgent:
        """Return an agent whose CLI plays the script; the keywords are the fields of `Options`."""
        ...

    async def wait_for_request(self, count: int = 1, timeout: float = PATIENCE) -> ModelRequest:
        """Wait for request number `count` to the model and return it. Raises `TimeoutError`."""
        ...

    async def release(self, timeout: float = PATIENCE) -> None:
        """Wait until the model stalls, then end all stalls. Raises `TimeoutError`."""
        ...

    def assert_complete(self) -> None:
        """Raise `AssertionError` if steps were not reached or the script itself failed."""
        ...


class StagedAgent(Agent):
    """An agent with a reference to its stage."""

    def __init__(
        self, stage: Stage, options: Options, *, transport: Transport | None = None
    ) -> None:
        super().__init__(options, transport=transport)
        self.stage = stage

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests of the conversation and its subagents so far."""
        return self.stage.asked


class MemoryStage:
    """Plays the script in this process, without starting another one."""

    def __init__(self, cli: ScriptedCLI, project: str | Path = ".") -> None:
        self.cli = cli
        self.project = Path(project).absolute()

    @property
    def asked(self) -> list[ModelRequest]:
        return self.cli.asked

    def agent(self, options: Options | None = None, **words: Unpack[OptionKwargs]) -> StagedAgent:
        usual: OptionKwargs = {"cwd": self.project, "inherit_env": False}
        return StagedAgent(self, options_from(options, {**usual, **words}), transport=self.cli)

    async def wait_for_request(self, count: int = 1, timeout: float = PATIENCE) -> ModelRequest:
        return await self.cli.wait_for_request(count, timeout)

    async def release(self, timeout: float = PATIENCE) -> None:
        await self.cli.release(timeout)

    def assert_complete(self) -> None:
        self.cli.script.assert_complete()


class ExecutableStage:
    """Plays the script in a separate process, through pipes, without the stock CLI."""

    def __init__(self, script: str | Script, directory: str | Path) -> None:
        self.program = executable(script, directory)
        self.project = Path(directory).absolute()

    @property
    def asked(self) -> list[ModelRequest]:
        return self.program.asked

    def agent(self, options: Options | None = None, **words: Unpack[OptionKwargs]) -> StagedAgent:
        usual: OptionKwargs = {"cwd": self.project, "inherit_env": False}
        usual["cli_path"] = self.program
        return StagedAgent(self, options_from(options, {**usual, **words}))

    async def wait_for_request(self, count: int = 1, timeout: float = PATIENCE) -> ModelRequest:
        return await self.program.wait_for_request(count, timeout)

    async def release(self, timeout: float = PATIENCE) -> None:
        await self.program.release(timeout)

    def assert_complete(self) -> None:
        self.program.assert_complete()


class StockStage:
    """Plays the script on the stock CLI, in a sandbox, with a scripted model on loopback.

    Usable inside `with` only; leaving the block ends the model and removes the sandbox.
    """

    def __init__(self, script: Script | None, cli: str | Path) -> None:
        self.box = CliSandbox()
        self.model = ScriptedModel(script)
        self._cli = cli
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.enter_context(self.box)
            opening.enter_context(self.model)
            self._open = opening.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    @property
    def project(self) -> Path:
        return self.box.project

    @property
    def asked(self) -> list[ModelRequest]:
        return self.model.asked

    def agent(self, options: Options | None = None, **words: Unpack[OptionKwargs]) -> StagedAgent:
        safe: OptionKwargs = {"inherit_env": False, "cwd": self.project, "cli_path": self._cli}
        # The caller's variables are added to those that the sandbox needs.
        given = words.get("env", {} if options is None else options.env)
        env = self.box.env(self.model.url, given)
        return StagedAgent(self, options_from(options, {**safe, **words, "env": env}))

    async def wait_for_request(self, count: int = 1, timeout: float = PATIENCE) -> ModelRequest:
        return await asyncio.to_thread(self.model.wait_for_request, count, timeout)

    async def release(self, timeout: float = PATIENCE) -> None:
        await asyncio.to_thread(self.model.release, timeout)

    def assert_complete(self) -> None:
        self.model.script.assert_complete()
