"""The environment of a scene: a sandbox, the CLI, and a scripted model for each run of the CLI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from steersman.ports import Launch
from steersman.testing import script
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.transports.subprocess import SubprocessTransport
from steersman_conformance.hosting import Answers
from steersman_conformance.raw import RawCli

__all__ = ["ASKING", "MODE", "STREAM_JSON", "Stage", "uuid_of"]

STREAM_JSON = (
    "--output-format=stream-json",
    "--input-format=stream-json",
    "--verbose",
    "--setting-sources=",
)
"""The flags that every scene needs."""

MODE = "--permission-mode=default"
"""A release may start in another mode when none is given, so steersman gives it always."""

ASKING = "--permission-prompt-tool=stdio"

STATES = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}

ModelStep = script.Answer | script.Scene


@dataclass(frozen=True, slots=True)
class Stage:
    """The sandbox of one scene, and the CLI to check."""

    program: str
    box: CliSandbox
    patience: float
    """Seconds to wait for anything that is expected."""

    @asynccontextmanager
    async def cli(
        self,
        *steps: ModelStep,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        answers: Answers | None = None,
        argv: Sequence[str] = (*STREAM_JSON, MODE, ASKING),
    ) -> AsyncGenerator[RawCli, None]:
        """Run the CLI with a model that plays `steps`; at the end of the block stdin is closed.

        The model echoes the prompt if no step is left. After the block the CLI has exited, and all
        its messages can be examined.
        """
        with ScriptedModel(script.Script(*steps)) as model:
            cli = RawCli(model, self.box.project, self.patience, answers)
            launch = Launch(
                argv=(self.program, *argv, *flags),
                env=self.box.env(model.url, {**STATES, **(env or {})}),
                cwd=str(self.box.project),
            )
            cli.connect(await SubprocessTransport().open(launch, cli))
            try:
                yield cli
                await cli.end()
            finally:
                await cli.kill()


def uuid_of(number: int) -> str:
    """Return a uuid that is easy to read in a log."""
    return f"{number:08d}-0000-4000-8000-000000000000"
