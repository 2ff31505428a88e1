"""Fetches an older stock CLI, to test what happens with the features that it lacks.

Each release of the official wheel bundles its CLI. `python -m steersman.testing.older_cli`
downloads an older wheel with pip and keeps its binary in the virtual environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from steersman.errors import CliNotFound

__all__ = ["OLDER_VERSION", "fetch_older_cli", "find_older_cli", "main"]

OLDER_VERSION = "2.1.191"
"""A version without `command_lifecycle`, interrupt receipts, capabilities and `onFailure`."""

OLDER_WHEEL = "claude-agent-sdk==0.2.110"
"""The release of the official wheel that bundles `OLDER_VERSION`."""

BINARY = "claude_agent_sdk/_bundled/claude"
PATIENCE = 600
LONGEST_REASON = 500

Download = Callable[[Path], None]


def find_older_cli(prefix: str = sys.prefix) -> Path:
    """Return the path of the older CLI. Raises `CliNotFound` if it was not fetched."""
    path = _place(prefix)
    if not os.access(path, os.X_OK):
        raise CliNotFound([f"{path} (run: python -m steersman.testing.older_cli)"])
    return path


def fetch_older_cli(prefix: str = sys.prefix, download: Download | None = None) -> Path:
    """Put the older CLI into the virtual environment if it is not there. Raises `OSError`."""
    path = _place(prefix)
    if os.access(path, os.X_OK):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        (download or _download)(Path(folder))
        unpacked = _unpack(Path(folder))
        unpacked.chmod(0o755)
        # A rename, so that no process ever runs a half-written file.
        unpacked.replace(path)
    return path


def main() -> int:
    """Fetch the older CLI and return the exit status."""
    try:
        fetch_older_cli()
    except OSError as error:
        sys.stderr.write(f"the older CLI {OLDER_VERSION} cannot be fetched: {error}\n")
        return 1
    return 0


def _place(prefix: str) -> Path:
    return Path(prefix, "older-cli", OLDER_VERSION, "claude")


def _download(folder: Path) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--retries", "2")
    command = (sys.executable, "-m", "pip", "download", *quiet, "--no-deps", "--dest", str(folder))
    try:
        subprocess.run(  # noqa: S603 - our own interpreter and fixed arguments
            (*command, OLDER_WHEEL), check=True, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.CalledProcessError as error:
        raise OSError(str(error.stderr).strip()[-LONGEST_REASON:]) from None
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"pip took longer than {PATIENCE} s") from None


def _unpack(folder: Path) -> Path:
    target = folder / "claude"
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            if BINARY in archive.namelist():
                with archive.open(BINARY) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
                return target
    raise FileNotFoundError(f"{OLDER_WHEEL} holds no {BINARY} for this platform")


if __name__ == "__main__":
    sys.exit(main())
