"""Pydantic Logfire: spans of agents."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse, keeping, spans

REQUIREMENTS = ("logfire==5.2.0",)


async def record(stage: Stage) -> Any:
    """Return the spans."""
    logfire = import_module("logfire")

    processor, kept = keeping()
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[processor])
    logfire.instrument_claude_agent_sdk()
    await converse(stage)
    # The package `mcp` has spans of its own; behind ours there is no server of that package.
    return [
        each
        for each in spans(kept.get_finished_spans())
        if "mcp.method.name" not in each["attributes"]
    ]
