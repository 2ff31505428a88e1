"""The oldest `mcp` that we speak, beside the newest that is installed.

`python -m tests.mcp_servers.older` has pip put it into the virtual environment, beside the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["OLDER_MCP", "main", "older_mcp"]

OLDER_MCP = "1.24.0"
PATIENCE = 600


def older_mcp() -> Path:
    """Where it is, or a skipped test; where CI runs, a test that cannot run has failed."""
    place = _place()
    if not (place / "mcp").is_dir():
        reason = f"mcp {OLDER_MCP} is not there; run: python -m tests.mcp_servers.older"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return place


def main() -> int:
    """Fetch it; gives pip's exit status."""
    if (_place() / "mcp").is_dir():
        return 0
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    wanted = ("--retries", "2", "--target", str(_place()), f"mcp=={OLDER_MCP}")
    return subprocess.run((*pip, *wanted), timeout=PATIENCE, check=False).returncode


def _place() -> Path:
    return Path(sys.prefix, "older-mcp", OLDER_MCP)


if __name__ == "__main__":
    sys.exit(main())
