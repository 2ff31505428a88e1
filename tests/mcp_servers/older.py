"""The oldest supported `mcp`, beside the newest that is installed.

`python -m tests.mcp_servers.older` has pip put it into the virtual environment, beside the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OLDER_MCP = "1.24.0"
PATIENCE = 600


def older_mcp() -> Path:
    """Return its directory, or skip the test; in CI, a test that cannot run fails."""
    place = _place()
    if not (place / "mcp").is_dir():
        reason = f"mcp {OLDER_MCP} is not there; run: python -m tests.mcp_servers.older"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return place


def main() -> int:
    """Install it; return the exit status of pip."""
    if (_place() / "mcp").is_dir():
        return 0
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    wanted = ("--retries", "2", "--target", str(_place()), f"mcp=={OLDER_MCP}")
    return subprocess.run((*pip, *wanted), timeout=PATIENCE, check=False).returncode


def _place() -> Path:
    return Path(sys.prefix, "older-mcp", OLDER_MCP)


if __name__ == "__main__":
    sys.exit(main())
