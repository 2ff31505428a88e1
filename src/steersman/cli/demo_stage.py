"""The places where the demo runs: the stock CLI offline, a scripted CLI, or a real login."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from steersman._json import JsonDict
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script
from steersman.testing.scripted.cli import ScriptedCLI

MakeScript = Callable[[Path], Script]


@dataclass(frozen=True, slots=True)
class Stage:
    """A place for one conversation."""

    title: str
    """The description of the CLI; `{version}` is replaced when it runs."""
    project: Path
    """The working directory of the agent."""
    fields: JsonDict = field(default_factory=JsonDict)
    """The options of an `Agent` that runs here."""
    is_free: bool = True


@contextmanager
def stock(make_script: MakeScript, program: str) -> Generator[Stage, None, None]:
    """Run the stock CLI with a scripted model: no login, no network except loopback."""
    with CliSandbox() as box, ScriptedModel(make_script(box.project)) as model:
        yield Stage(
            "stock Claude Code CLI {version} on a scripted model, offline",
            box.project,
            {"cli_path": program, "inherit_env": False, "env": box.env(model.url)},
        )


@contextmanager
def embedded(make_script: MakeScript, why: str) -> Generator[Stage, None, None]:
    """Run the scripted CLI in this process, without starting another one."""
    with TemporaryDirectory(prefix="steersman-") as folder:
        project = Path(folder).resolve()
        transport = ScriptedCLI(make_script(project), tools={"Write": _write})
        yield Stage(f"the embedded scripted CLI ({why})", project, {"transport": transport})


@contextmanager
def real(budget_usd: float) -> Generator[Stage, None, None]:
    """Run the user's own CLI with its login, in a temporary folder, up to a budget."""
    with TemporaryDirectory(prefix="steersman-") as folder:
        yield Stage(
            "stock Claude Code CLI {version} with your own login",
            Path(folder).resolve(),
            {"max_turns": 12, "max_budget_usd": budget_usd},
            is_free=False,
        )


def _write(given: JsonDict) -> str:
    """Replace the tool Write; the permission callback has checked the path."""
    Path(given["file_path"]).write_text(given["content"], encoding="utf-8")
    return "Written."
