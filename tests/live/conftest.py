"""The stage of the live tests: a sandbox, a scripted model, and nobody left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Scene, Script
from tests.live.staging import MakeScripted, inhabitants
from tests.live.test_harness import stock_cli


@pytest.fixture(scope="session")
def cli() -> Path:
    """The stock CLI; where CI runs, its absence is a failure."""
    return stock_cli()


@pytest.fixture
def sandbox() -> Iterator[CliSandbox]:
    """A home for CLIs, in which nobody may be left alive."""
    with CliSandbox() as box:
        yield box
        left = inhabitants(box.root)
    assert left == {}


@pytest.fixture
def scripted(sandbox: CliSandbox, cli: Path) -> Iterator[MakeScripted]:
    """A factory of agents that are safe: nothing of this machine's environment, only loopback."""
    with ExitStack() as models:
        scripts: list[Script] = []

        def make(
            *steps: Answer | Scene | Script,
            env: Mapping[str, str] | None = None,
            keep: int | None = None,
            **options: Any,
        ) -> tuple[Agent, ScriptedModel]:
            script = script_of(*steps)
            scripts.append(script)
            model = models.enter_context(ScriptedModel(script, keep=keep))
            safe = {"inherit_env": False, "cwd": sandbox.project, "cli_path": cli}
            return Agent(**{**safe, "env": sandbox.env(model.url, env), **options}), model

        yield make
    assert [surprise for script in scripts for surprise in script.surprises] == []


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak_only)])
def work_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where durable work is stored: a file, and in `make soak` also a PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path / 'work.db'}"
    return str(request.getfixturevalue("postgres_url"))


def script_of(*steps: Answer | Scene | Script) -> Script:
    if len(steps) == 1 and isinstance(steps[0], Script):
        return steps[0]
    return Script(*(each for each in steps if not isinstance(each, Script)), strict=True)
