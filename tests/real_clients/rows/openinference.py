"""OpenInference: spans of agents, for Arize Phoenix and others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse, in_memory, spans

REQUIREMENTS = ("openinference-instrumentation-claude-agent-sdk==0.1.22",)


async def record(stage: Stage) -> Any:
    """Return the spans."""
    package = import_module("openinference.instrumentation.claude_agent_sdk")

    provider, kept = in_memory()
    package.ClaudeAgentSDKInstrumentor().instrument(tracer_provider=provider)
    await converse(stage)
    return spans(kept.get_finished_spans())
