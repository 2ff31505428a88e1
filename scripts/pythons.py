"""Run the fast tests on newer Pythons than the oldest one, in three event loops.

    python scripts/pythons.py tests/...          on every Python that is here or that uv can bring
    python scripts/pythons.py --one tests/...    on the newest one that is here

A Python that is not here is named in the last line, and in the file that `STEERSMAN_NOT_RUN` names;
it is no failure. Each has an environment in `.venv/pythons`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

VERSIONS = ("3.12", "3.13", "3.14")
ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venv" / "pythons"
PATIENCE = 600
"""Seconds for one step."""

LOOPS = ("eager", "uvloop")
"""Event loops other than the usual one; see `tests/conftest.py`."""
IN_LOOPS = (
    "tests/_session/requests",
    "tests/_session/test_closing.py",
    "tests/_session/test_listeners.py",
    "tests/_session/test_revival.py",
    "tests/_session/test_task_factories.py",
    "tests/transports/test_memory.py",
    "tests/transports/test_pipes.py",
)
"""Tests that run once more in those loops."""
FAST = "not process and not live and not slow and not real"


def main(arguments: Sequence[str]) -> int:
    """Run the tests that `arguments` name; return 1 if some failed, else 0."""
    tests = [each for each in arguments if each != "--one"]
    if "--one" in arguments:
        here = [version for version in reversed(VERSIONS) if find(version)][:1]
        missing = [] if here else list(VERSIONS)
    else:
        here = [version for version in VERSIONS if find(version) or fetch(version)]
        missing = [version for version in VERSIONS if version not in here]
    failed = [version for version in here if not run(version, tests)]
    if missing:
        report_not_run(missing)
    if failed:
        say(f"FAILED on Python {', '.join(failed)}")
    return 1 if failed else 0


def run(version: str, tests: Sequence[str]) -> bool:
    """Run the tests on one Python, which is here; returns whether they passed."""
    program = find(version)
    python = None if program is None else prepare(version, program)
    if python is None:
        say(f"Python {version}: the packages could not be installed")
        return False
    passed = [pytest(version, python, "", tests)]
    passed += [pytest(version, python, loop, IN_LOOPS) for loop in LOOPS]
    return all(passed)


def report_not_run(versions: Sequence[str]) -> None:
    """Name the Pythons that are not here."""
    words = f"not run, because it is not here: Python {', '.join(versions)}"
    say(words)
    if place := os.environ.get("STEERSMAN_NOT_RUN"):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{words}\n")


def pytest(version: str, python: str, loop: str, tests: Sequence[str]) -> bool:
    """Run tests in an event loop; returns whether they passed."""
    say(f"Python {version}{f', {loop}' if loop else ''}")
    quick = {"STEERSMAN_QUICK": "1", "HYPOTHESIS_PROFILE": "quick", "STEERSMAN_SEEDS": "20"}
    command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", FAST]
    in_loop = {"STEERSMAN_LOOP": loop} if loop else {}
    return done([*command, "-p", "no:cacheprovider", *tests], {**quick, **in_loop})


def find(version: str) -> str | None:
    """Return the program of that version: on the path, from pyenv, or from uv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    places = [
        shutil.which(f"python{version}"),
        *map(str, sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)),
        *map(str, sorted(PLACE.glob(f"uv/*{version}*/bin/python{version}"), reverse=True)),
    ]
    return next((each for each in places if each and is_version(each, version)), None)


def is_version(program: str, version: str) -> bool:
    """Return whether `program` runs and is that Python; a shim of pyenv may be neither."""
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        found = subprocess.run(  # noqa: S603 - a Python that was found on this machine
            [program, "-c", show], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.stdout.strip() == version


def fetch(version: str) -> str | None:
    """Have uv bring that Python into `.venv/pythons/uv`; uv itself comes from pip if need be."""
    uv = shutil.which("uv") or str(PLACE / "uv-program" / "bin" / "uv")
    if not Path(uv).exists():
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        if not done([*pip, f"--target={PLACE / 'uv-program'}", "uv"], is_quiet=True):
            return None
    where = f"--install-dir={PLACE / 'uv'}"
    if not done([uv, "python", "install", "--no-bin", where, version], is_quiet=True):
        return None
    return find(version)


def prepare(version: str, program: str) -> str | None:
    """Make the environment of a Python, unless pyproject.toml is older; return its program."""
    place = PLACE / version
    python, stamp = str(place / "bin" / "python"), place / "ready"
    wanted = ROOT / "pyproject.toml"
    if stamp.exists() and stamp.stat().st_mtime > wanted.stat().st_mtime:
        return python
    pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--retries=2"]
    made = done([program, "-m", "venv", str(place)]) and done(
        [*pip, "--editable", f"{ROOT}[quick,uvloop]"]
    )
    if not made:
        return None
    stamp.touch()
    return python


def done(
    command: Sequence[str], more: Mapping[str, str] | None = None, *, is_quiet: bool = False
) -> bool:
    """Run a command in the checkout; returns whether it succeeded in time."""
    output = subprocess.DEVNULL if is_quiet else None
    try:
        ended = subprocess.run(  # noqa: S603 - the commands above
            command,
            cwd=ROOT,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{command[0]}: {type(error).__name__}")
        return False
    return ended.returncode == 0


def say(text: str) -> None:
    """Print a line of this program, among those of pytest."""
    print(f"--- {text}", flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
