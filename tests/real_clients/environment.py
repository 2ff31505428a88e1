"""Makes the environment in which the packages run: `python -m tests.real_clients.environment`.

It is a directory of its own, `.venv/real-clients`, with the official package, this library as it
stands here, and what the rows name. pip fetches from the index that is set up for it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".venv" / "real-clients"
PYTHON = PLACE / "bin" / "python"
ROWS = sorted(each.stem for each in (Path(__file__).parent / "rows").glob("*.py"))


def requirements() -> dict[str, tuple[str, ...]]:
    """Return what each row needs, with pinned versions."""
    return {name: import_module(f"tests.real_clients.rows.{name}").REQUIREMENTS for name in ROWS}


def main() -> None:
    """Make the environment anew."""
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    official = f"claude-agent-sdk=={version('claude-agent-sdk')}"
    needed = [each for row in requirements().values() for each in row]
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--editable", str(ROOT)]
    subprocess.run([*install, official, *needed], check=True)
    for tests in PLACE.glob("lib/*/site-packages/tests"):
        # Some package installs its tests under this name, which is that of our folder.
        shutil.rmtree(tests)


if __name__ == "__main__":
    main()
