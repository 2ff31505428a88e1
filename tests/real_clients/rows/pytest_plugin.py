"""pytest-claude-agent-sdk: a client that records its calls."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import given, kinds

REQUIREMENTS = ("pytest-claude-agent-sdk==0.1.1",)


async def record(stage: Stage) -> Any:
    """Return the calls and their results."""
    package = import_module("pytest_claude_agent_sdk")

    client = package.SpyClaudeSDKClient()
    options = given(stage, allowed_tools=["Bash"])
    seen = await kinds(client.query("Do the first.", options=options))
    client.assert_called_once()
    return [seen, [(each.prompt, each.result, each.response) for each in client.calls]]
