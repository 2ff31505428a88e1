"""AG-UI: events of an agent for user interfaces."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import given

REQUIREMENTS = ("ag-ui-claude-sdk==0.2.3",)


async def record(stage: Stage) -> Any:
    """Return the events of two runs of one thread."""
    core = import_module("ag_ui.core")
    package = import_module("ag_ui_claude_sdk")

    adapter = package.ClaudeAgentAdapter("agent", given(stage, allowed_tools=["Bash"]))
    events: list[Any] = []
    for run_id, prompt in (("run 1", "Do the first."), ("run 2", "And now?")):
        asked = core.RunAgentInput(
            thread_id="thread",
            run_id=run_id,
            messages=[core.UserMessage(id=run_id, role="user", content=prompt)],
            state={},
            tools=[],
            context=[],
            forwarded_props={},
        )
        events += [
            event.model_dump(mode="json", exclude_none=True) async for event in adapter.run(asked)
        ]
    await adapter.shutdown()
    return events
