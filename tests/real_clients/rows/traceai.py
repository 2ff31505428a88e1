"""traceAI: spans of agents, for Future AGI."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse, in_memory, spans

REQUIREMENTS = ("traceai-claude-agent-sdk==0.1.0",)


async def record(stage: Stage) -> Any:
    """Return the spans."""
    package = import_module("traceai_claude_agent_sdk")

    provider, kept = in_memory()
    package.ClaudeAgentInstrumentor().instrument(tracer_provider=provider)
    await converse(stage)
    return spans(kept.get_finished_spans())
