"""PostHog: events of generations, spans and traces."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.compat.programs.stage import Stage
from tests.real_clients.workload import given, kinds, with_tool

REQUIREMENTS = ("posthog==7.91.1",)


async def record(stage: Stage) -> Any:
    """Return the events, which are then dropped."""
    package = import_module("posthog")
    integration = import_module("posthog.ai.claude_agent_sdk")

    events: list[Any] = []

    def keep(event: Any) -> None:
        events.append({"event": event["event"], "properties": event["properties"]})

    posthog = package.Posthog("none", host="http://127.0.0.1:9", before_send=keep)
    agent = integration.instrument(client=posthog, distinct_id="somebody")
    options = given(stage, allowed_tools=["Bash"])
    seen = await kinds(agent.query(prompt="Do the first.", options=options))
    async with integration.PostHogClaudeSDKClient(
        with_tool(stage), posthog_client=posthog, posthog_distinct_id="somebody"
    ) as client:
        for prompt in ("What is 2 + 3?", "Say bye."):
            await client.query(prompt)
            seen += await kinds(client.receive_response())
    posthog.shutdown()
    return [seen, events]
