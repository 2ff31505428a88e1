"""Runs a program as it stands, on the stock CLI and a scripted model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.errors import CliNotFound
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script

ROOT = Path(__file__).parents[2]
LIMIT = 60.0


def run_offline(
    arguments: list[str], script: Script, *, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run Python with `arguments` in an environment that knows no login and no network."""
    program = stock_cli()
    with CliSandbox() as box, ScriptedModel(script) as model:
        added = {"STEERSMAN_CLI": str(program), "PYTHONPATH": str(ROOT / "src")}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=box.project,
            env=box.env(model.url, added),
            input=typed,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )


def stock_cli() -> Path:
    """Find the CLI, or skip the test; where CI runs, a test that cannot run has failed."""
    try:
        return find_stock_cli()
    except CliNotFound as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
