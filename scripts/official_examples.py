"""Fetches the example programs of the official package, which `tests/compat` runs as they stand.

They are in its source distribution, and stay in the virtual environment: none is kept here.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ["fetch", "place"]

RELEASE = "0.2.182"
SHA256 = "bcecafd906f2dcb6bb8aac0799ff2534a2b2ec0895d67e3bd5a909d5f5e3df98"
"""Of the source distribution of that release, as it was published."""
PATIENCE = 300
LONGEST_REASON = 500


def place() -> Path:
    """Return the folder of the examples, which may not be there yet."""
    return Path(sys.prefix, "official-examples", RELEASE, "examples")


def fetch() -> Path:
    """Put the examples into the virtual environment if they are not there. Raises `OSError`."""
    target = place().parent
    if place().is_dir():
        return place()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        _download(Path(folder))
        made = Path(folder, "made")
        _unpack(Path(folder), made)
        shutil.rmtree(target, ignore_errors=True)
        made.replace(target)
    return place()


def _download(folder: Path) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--retries", "2")
    source = ("--no-deps", "--no-binary", "claude-agent-sdk", "--dest", str(folder))
    command = (sys.executable, "-m", "pip", "download", *quiet, *source)
    try:
        subprocess.run(  # noqa: S603 - our own interpreter and fixed arguments
            (*command, f"claude-agent-sdk=={RELEASE}"),
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.CalledProcessError as error:
        raise OSError(str(error.stderr).strip()[-LONGEST_REASON:]) from None
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"pip took longer than {PATIENCE} s") from None


def _unpack(folder: Path, target: Path) -> None:
    """Unpack the examples, and nothing else."""
    archives = list(folder.glob("*.tar.gz"))
    if len(archives) != 1:
        raise FileNotFoundError(f"there is no source distribution of claude-agent-sdk {RELEASE}")
    found = hashlib.sha256(archives[0].read_bytes()).hexdigest()
    if found != SHA256:
        raise OSError(f"{archives[0].name} is not that of {RELEASE}: its SHA-256 is {found}")
    with tarfile.open(archives[0]) as archive:
        top = f"claude_agent_sdk-{RELEASE}/"
        members = [each for each in archive if each.name.startswith(f"{top}examples/")]
        for each in members:
            each.name = each.name.removeprefix(top)
        archive.extractall(target, members, filter="data")


def main() -> int:
    """Fetch the examples and return the exit status."""
    try:
        fetch()
    except OSError as error:
        sys.stderr.write(f"the official examples {RELEASE} cannot be fetched: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
