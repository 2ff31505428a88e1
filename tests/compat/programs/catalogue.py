"""Which programs there are: a function each, with the script of the model it talks to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from steersman.testing.script import Answer, Scene, Script
from tests.compat.programs.stage import Stage

Function = Callable[[Any, Stage], Awaitable[None]]


@dataclass(frozen=True)
class Program:
    """A program on the public API of the official package."""

    name: str
    run: Function
    steps: tuple[Answer | Scene, ...]
    branches: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    alone: bool = False
    """Whether it needs the environment of the process, and so no other program beside it."""

    @property
    def group(self) -> str:
        """The file that it stands in."""
        return self.run.__module__.rpartition(".")[2]

    def script(self) -> Script:
        """Return a new script; one is used up by a run."""
        script = Script(*self.steps, strict=True)
        for match, steps in self.branches.items():
            script.branch(match, *steps)
        return script


ALL: dict[str, Program] = {}


def program(
    *steps: Answer | Scene,
    branches: Mapping[str, tuple[Answer, ...]] | None = None,
    alone: bool = False,
) -> Callable[[Function], Function]:
    """Add a program, whose model plays `steps`."""

    def add(run: Function) -> Function:
        name = getattr(run, "__name__", "")
        assert name not in ALL, name
        ALL[name] = Program(name, run, steps, branches or {}, alone)
        return run

    return add


def load() -> dict[str, Program]:
    """Return all programs."""
    for path in sorted(Path(__file__).parent.glob("on_*.py")):
        import_module(f"tests.compat.programs.{path.stem}")
    return ALL
