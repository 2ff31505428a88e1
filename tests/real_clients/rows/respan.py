"""Respan: logs of agents, by hooks and messages."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import collector, given, with_tool

REQUIREMENTS = ("respan-exporter-anthropic-agents==1.0.16",)


async def record(stage: Stage) -> Any:
    """Return the logs, as they were sent."""
    package = import_module("respan_exporter_anthropic_agents")

    with collector() as (url, sent):
        exporter = package.RespanAnthropicAgentsExporter(api_key="none", endpoint=url)
        for prompt, options in (
            ("Do the first.", given(stage, allowed_tools=["Bash"])),
            ("What is 2 + 3?", with_tool(stage)),
        ):
            async for _ in exporter.query(prompt=prompt, options=options):
                pass
        await asyncio.get_running_loop().shutdown_default_executor()
        return sent
