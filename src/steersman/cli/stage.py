"""Where the demo can play: the stock CLI offline, the embedded scripted CLI, or the real thing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steersman.errors import CliNotFound
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script
from steersman.testing.scripted_cli import ScriptedCLI
from steersman.transports.locate import locate

__all__ = ["Stage", "embedded", "real", "stock"]

Story = Callable[[Path], Script]


@dataclass(frozen=True, slots=True)
class Stage:
    """A place for one conversation."""

    title: str
    """Says which CLI it is; `{version}` is filled in once it runs."""
    project: Path
    """The folder that the agent works in."""
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """What an `Agent` needs to run here."""
    is_free: bool = True


@contextmanager
def stock(story: Story) -> Generator[Stage, None, None]:
    """The stock CLI on a scripted model: no login, no network but loopback.

    Raises `CliNotFound`.
    """
    program = _stock_program()
    with CliSandbox() as box, ScriptedModel(story(box.project)) as model:
        yield Stage(
            "stock Claude Code CLI {version} on a scripted model, offline",
            box.project,
            {"cli_path": program, "inherit_env": False, "env": box.env(model.url)},
        )


@contextmanager
def embedded(story: Story) -> Generator[Stage, None, None]:
    """The scripted CLI in this process: nothing is run at all."""
    with TemporaryDirectory(prefix="steersman-") as folder:
        project = Path(folder).resolve()
        transport = ScriptedCLI(story(project))
        yield Stage("the embedded scripted CLI, no process", project, {"transport": transport})


@contextmanager
def real(budget_usd: float) -> Generator[Stage, None, None]:
    """The user's own CLI and login, in a folder of its own, up to a budget."""
    with TemporaryDirectory(prefix="steersman-") as folder:
        yield Stage(
            "stock Claude Code CLI {version} with your own login",
            Path(folder).resolve(),
            {"max_turns": 12, "max_budget_usd": budget_usd},
            is_free=False,
        )


def _stock_program() -> str:
    try:
        return str(find_stock_cli())
    except CliNotFound:
        return locate()
