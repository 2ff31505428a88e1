"""Starts the process that runs programs, in an environment that is built from nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from steersman.testing.sandbox import FIXED_ENVIRONMENT

OFFICIAL = "claude_agent_sdk"
OURS = "steersman.compat"

INSTALLED = "import steersman.compat; steersman.compat.install(); "
WAYS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "runner": (("-m", "steersman.compat", "-m", "tests.compat.programs.run"), {}),
    "install()": (("-c", f"{INSTALLED}from tests.compat.programs.run import main; main()"), {}),
    "environment": (("-m", "tests.compat.programs.run"), {"STEERSMAN_COMPAT": "1"}),
}
"""How a program that imports the official package gets ours: what Python is given."""

ROOT = Path(__file__).parents[3]
LONGEST = 540.0


def play(
    package: str, cli: Path, names: Iterable[str] = (), *, way: str | None = None
) -> dict[str, Any]:
    """Run the named programs, or all, on `package` and `cli`; return their traces by name.

    `way` is one of `WAYS`, in which the official package is ours.
    """
    words, more = WAYS[way] if way is not None else (("-m", "tests.compat.programs.run"), {})
    places = (str(ROOT / "src"), str(ROOT), str(Path(__file__).parent / "site"))
    with tempfile.TemporaryDirectory(prefix="steersman-") as home:
        own = {"HOME": home, "TMPDIR": home, "PYTHONPATH": ":".join(places)}
        ended = subprocess.run(
            [sys.executable, *words, package, str(cli), *names],
            env={**FIXED_ENVIRONMENT, **own, **more},
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
