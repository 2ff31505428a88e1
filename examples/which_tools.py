"""Which tools exist: a list, none, or all of Claude Code.

`tools=` chooses the tools that exist; `allowed_tools=` those that run without a question.
Run it with `python examples/which_tools.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from steersman import Agent
from steersman.messages import Init


async def tools_of(agent: Agent, tools: Sequence[str]) -> list[str]:
    """Return the tools that the CLI reports at the beginning of a turn."""
    async with agent.query("What tools do you have? Only the names.", tools=tools) as messages:
        async for message in messages:
            if isinstance(message, Init):
                print(f"{tools!r}: {', '.join(message.tools) or 'none'}")
                return list(message.tools)
    return []


if __name__ == "__main__":
    for each in (["Read", "Glob", "Grep"], []):
        asyncio.run(tools_of(Agent(), each))
