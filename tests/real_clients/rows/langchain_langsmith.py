"""LangSmith: runs of agents, models and tools."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import collector, converse

REQUIREMENTS = ("langsmith==0.14.17",)


async def record(stage: Stage) -> Any:
    """Return the runs, as they were sent."""
    langsmith = import_module("langsmith")
    package = import_module("langsmith.integrations.claude_agent_sdk")

    with collector() as (url, sent):
        client = langsmith.Client(url, api_key="none", auto_batch_tracing=False, info={})
        package.configure_claude_agent_sdk()
        with langsmith.tracing_context(client=client, enabled=True):
            await converse(stage)
        client.flush()
        return sent
