"""The `mcp` package is optional: it is imported only by programs that use it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steersman.tools._mcp.package import as_message, as_plain
from tests.mcp_servers.running import ROOT

WITHOUT = """
import sys
sys.modules["mcp"] = None
from steersman import Agent
from steersman.tools import Toolbox
from steersman.tools.mcp_remote import RemoteTools
Agent(mcp_servers={"box": Toolbox("box")})
try:
    RemoteTools({"command": "x"})
except ValueError as error:
    print(error)
"""

LOADED = """
import sys
import steersman
from steersman.tools.mcp_remote import RemoteTools
steersman.Agent(mcp_servers={"box": steersman.Toolbox("box"), "far": {"command": "x"}})
print(sorted({"mcp", "anyio", "pydantic", "httpx"} & set(sys.modules)))
"""


def said_by(program: str) -> str:
    done = subprocess.run(
        (sys.executable, "-c", program),
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_without_the_package_the_error_says_how_to_get_it() -> None:
    assert said_by(WITHOUT).splitlines() == [
        "config: got a server of the mcp package, allowed: only where that package is installed",
        "What to do: pip install steersman[mcp]",
    ]


def test_the_package_is_imported_only_when_it_is_used() -> None:
    assert said_by(LOADED) == "[]"


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 0, "method": "ping"},
        {"jsonrpc": "2.0", "id": "a", "method": "x", "params": {"a": None, "_meta": {"b": [1.5]}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {"unheard": {"of": None}}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "m", "data": [None]}},
    ],
)
def test_a_message_comes_out_of_the_package_as_it_went_in(message: dict[str, object]) -> None:
    assert as_plain(as_message(message)) == message


@pytest.mark.parametrize("message", [{}, {"id": 1}, {"jsonrpc": "1.0", "id": 1, "method": "x"}])
def test_what_is_no_json_rpc_is_refused(message: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        as_message(message)
