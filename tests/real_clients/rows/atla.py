"""Atla Insights: spans of agents."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse, keeping, spans

REQUIREMENTS = ("atla-insights==0.0.41",)
DIFFERS = "it imports claude_agent_sdk._internal.query, which is not here"


async def record(stage: Stage) -> Any:
    """Return the spans."""
    atla_insights = import_module("atla_insights")

    processor, kept = keeping()
    atla_insights.configure(token="none", additional_span_processors=[processor])
    with atla_insights.instrument_claude_agent_sdk():
        # It writes the options as JSON, and raises on a server of this process.
        await converse(stage, has_own_tool=False)
    return spans(kept.get_finished_spans())
