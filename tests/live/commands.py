"""Runs the `steersman` command in the sandbox of a live test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import steersman

PROGRAM = [sys.executable, "-m", "steersman.cli"]
SOURCE = str(Path(steersman.__file__).parents[1])
LIMIT = 60.0


def command_env(env: Mapping[str, str], cli: Path, **more: str) -> dict[str, str]:
    """The environment of a sandbox, with which the command finds the stock CLI and our source."""
    return {**env, "STEERSMAN_CLI": str(cli), "PYTHONPATH": SOURCE, **more}


def run_command(
    env: Mapping[str, str], cwd: Path, *words: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command with pipes, to its end."""
    return subprocess.run(
        [*PROGRAM, *words],
        env=env,
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
