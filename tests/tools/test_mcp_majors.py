"""Tests that pass with the newest `mcp` pass with the oldest supported one, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.mcp_servers.older import OLDER_MCP, older_mcp
from tests.mcp_servers.running import ROOT

pytestmark = pytest.mark.process

INSTANCE, REMOTE = "tests/tools/test_mcp_instance.py", "tests/tools/test_mcp_remote.py"
CONTRACTS = "tests/testing/contracts/test_tool_servers.py"
RUNS: tuple[tuple[str, str], ...] = (
    (INSTANCE, ""),
    (CONTRACTS, "mcp_package"),
)
if os.environ.get("STEERSMAN_SOAK"):
    # In parts, because they start many programs; each test is in exactly one.
    RUNS += ((REMOTE, "not stdio and not http and not sse"),)
    RUNS += ((REMOTE, "stdio"), (REMOTE, "http and not stdio"))
    RUNS += ((REMOTE, "sse and not http and not stdio"),)
LONGEST_SHOWN = 3000
PATIENCE = 250

TELL = "import importlib.metadata, mcp.server.fastmcp; print(importlib.metadata.version('mcp'))"


def with_the_oldest(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, *words),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(older_mcp())},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_other_package_is_the_oldest() -> None:
    assert with_the_oldest("-c", TELL).stdout.strip() == OLDER_MCP


@pytest.mark.timeout(PATIENCE + 30)
@pytest.mark.soak
@pytest.mark.parametrize(("file", "part"), RUNS)
def test_the_oldest_package_does_the_same(file: str, part: str) -> None:
    # Its own old dependencies warn of each other.
    lenient = ("-p", "no:cacheprovider", "-o", "filterwarnings=default")

    done = with_the_oldest("-m", "pytest", "-q", *lenient, "-k", part, file)

    assert done.returncode == 0, done.stdout[-LONGEST_SHOWN:]
