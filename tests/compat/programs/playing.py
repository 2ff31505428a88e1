"""Starts the process that runs programs, in an environment that is built from nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steersman.testing.sandbox import FIXED_ENVIRONMENT

OFFICIAL = "claude_agent_sdk"
OURS = "steersman.compat"

ROOT = Path(__file__).parents[3]
LONGEST = 540.0


def play(package: str, cli: Path, names: Iterable[str] = ()) -> dict[str, Any]:
    """Run the named programs, or all, on `package` and `cli`; return their traces by name."""
    places = (str(ROOT / "src"), str(ROOT))
    with tempfile.TemporaryDirectory(prefix="steersman-") as home:
        own = {"HOME": home, "TMPDIR": home, "PYTHONPATH": ":".join(places)}
        ended = subprocess.run(
            [sys.executable, "-m", "tests.compat.programs.run", package, str(cli), *names],
            env={**FIXED_ENVIRONMENT, **own},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            # Both packages log what programs do on purpose.
            stderr=None if os.environ.get("PROGRAMS_STDERR") else subprocess.DEVNULL,
            check=True,
            timeout=LONGEST,
        )
    traces: dict[str, Any] = json.loads(ended.stdout)
    return traces


def cli_version(cli: Path) -> str:
    """Return the version of a CLI."""
    with tempfile.TemporaryDirectory(prefix="steersman-") as home:
        ended = subprocess.run(
            [cli, "--version"],
            env={**FIXED_ENVIRONMENT, "HOME": home},
            stdout=subprocess.PIPE,
            check=True,
            timeout=60,
        )
    return ended.stdout.decode().split()[0]
