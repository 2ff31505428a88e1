"""Spans by the conventions of OpenTelemetry for generative AI."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse, in_memory, spans

REQUIREMENTS = ("otel-instrumentation-claude-agent-sdk==0.0.6",)


async def record(stage: Stage) -> Any:
    """Return the spans."""
    package = import_module("opentelemetry.instrumentation.claude_agent_sdk")

    provider, kept = in_memory()
    package.ClaudeAgentSdkInstrumentor().instrument(tracer_provider=provider)
    await converse(stage)
    return spans(kept.get_finished_spans())
