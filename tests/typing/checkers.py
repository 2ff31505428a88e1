"""mypy and pyright, over files that use the built wheel in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
LIMIT = 240.0
REFUSED = "  # refused"
ERROR = re.compile(r"(?:.*/)?(\w+\.py):(\d+): error: (.*)")

Mode = Literal["mypy strict", "pyright strict", "pyright basic"]
Marks = dict[str, dict[int, str]]
"""What is marked, by file and line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with an environment in which the built wheel is installed."""

    folder: Path
    python: Path

    @property
    def config(self) -> Path:
        """The configuration of pyright."""
        return self.folder / "pyrightconfig.json"


def place(folder: Path) -> Place:
    """Build the wheel and install it; other packages are those of the environment of the tests.

    Those that are installed as a link to the checkout, such as steersman itself, are not among
    them: Python follows such links only in an environment's own folder.
    """
    env = folder / "env"
    venv.create(env, with_pip=False)
    inside = {"base": str(env), "platbase": str(env)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=inside))
    built = folder / "dist"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=LIMIT)
    (wheel,) = built.iterdir()
    zipfile.ZipFile(wheel).extractall(site)
    others = (sysconfig.get_path("purelib"), str(ROOT / "packages/steersman-conformance/src"))
    (site / "others.pth").write_text("".join(f"{each}\n" for each in others))
    found = Place(folder, env / "bin" / "python")
    settings = {"include": ["strict", "basic"], "venvPath": str(folder), "venv": "env"}
    found.config.write_text(json.dumps(settings))
    return found


def marked_by(where: Place, files: Mapping[str, str], *, has_basic: bool) -> dict[Mode, Marks]:
    """Return the lines that each checker marks in these files; each checker is run once."""
    for mode in ("strict", "basic") if has_basic else ("strict",):
        (where.folder / mode).mkdir()
        for name, text in files.items():
            # One line more at the top: a file's own settings must come after it.
            path = where.folder / mode / name
            path.write_text(f"# pyright: {mode}\n{text}", encoding="utf-8")
    with ThreadPoolExecutor() as both:
        mypy, pyright = both.submit(_mypy, where), both.submit(_pyright, where)
    found: dict[Mode, Marks] = {"mypy strict": mypy.result()}
    for mode, marks in pyright.result().items():
        found["pyright strict" if mode == "strict" else "pyright basic"] = marks
    return found


def _mypy(where: Place) -> Marks:
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"),
        # Kept, because most of the time goes into the packages that the right forms import.
        *("--python-executable", str(where.python), "--cache-dir", str(ROOT / ".mypy_cache/wheel")),
        *("--no-pretty", "--hide-error-codes", str(where.folder / "strict")),
    ]
    return _read_mypy(*_run(command, where))


def _pyright(where: Place) -> dict[str, Marks]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(where.config)]
    return _read_pyright(*_run(command, where))


def _run(command: list[str], where: Place) -> tuple[str, str]:
    env = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    done = subprocess.run(
        command,
        cwd=where.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.stdout, done.stderr


def _read_mypy(said: str, complained: str) -> Marks:
    assert not complained, complained
    found: Marks = {}
    for name, line, text in ERROR.findall(said):
        found.setdefault(name, {}).setdefault(int(line) - 1, text)
    assert found or not said, said
    return found


def _read_pyright(said: str, complained: str) -> dict[str, Marks]:
    assert said, complained
    found: dict[str, Marks] = {"strict": {}, "basic": {}}
    for each in json.loads(said)["generalDiagnostics"]:
        if each["severity"] != "error":
            continue
        path, line = Path(each["file"]), each["range"]["start"]["line"]
        found[path.parent.name].setdefault(path.name, {}).setdefault(line, each["message"])
    return found
