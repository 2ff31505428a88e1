"""Microsoft Agent Framework: an agent on the client."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import given

REQUIREMENTS = ("agent-framework-claude==1.0.0b261015",)


async def record(stage: Stage) -> Any:
    """Return the answers."""
    package = import_module("agent_framework_claude")

    given(stage)
    options = {
        "cli_path": str(stage.cli),
        "cwd": str(stage.cwd),
        "env": stage.env(),
        "allowed_tools": ["Bash"],
    }
    async with package.ClaudeAgent("Be short.", default_options=options) as agent:
        answer = await agent.run("Do the first.")
        pieces = [str(each) async for each in agent.run("And now?", stream=True)]
    return [str(answer), pieces, [message.role for message in answer.messages]]
