"""Braintrust: spans of agents, models and tools."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse

REQUIREMENTS = ("braintrust==0.47.0",)


async def record(stage: Stage) -> Any:
    """Return whether it has set itself up, and what it would have uploaded."""
    braintrust = import_module("braintrust")
    integration = import_module("braintrust.integrations.claude_agent_sdk")
    helpers = import_module("braintrust.test_helpers")

    with braintrust.logger._internal_with_memory_background_logger() as kept:
        helpers.init_test_logger("project")
        is_set_up = integration.ClaudeAgentSDKIntegration.setup()
        await converse(stage)
        return [is_set_up, kept.pop()]
