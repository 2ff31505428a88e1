"""Datadog: spans of agents, by `ddtrace`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import converse

REQUIREMENTS = ("ddtrace==4.16.0",)


async def record(stage: Stage) -> Any:
    """Return the spans of all traces, which are then dropped."""
    ddtrace = import_module("ddtrace")

    found: list[Any] = []

    def keep(_: Any, trace: list[Any]) -> None:
        names = {each.span_id: each.name for each in trace}
        found.extend(
            {
                "name": each.name,
                "resource": each.resource,
                "parent": names.get(each.parent_id),
                "error": each.error,
                "tags": each.get_tags(),
            }
            for each in trace
        )

    keeps = type("Keeps", (ddtrace.trace.TraceFilter,), {"process_trace": keep})
    ddtrace.trace.tracer.configure(trace_processors=[keeps()])
    ddtrace.patch(claude_agent_sdk=True)
    await converse(stage)
    return found
