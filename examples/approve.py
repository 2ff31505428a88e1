"""Approve: the user is asked before a tool runs, and a hook denies some calls without asking.

Run it with `python examples/approve.py "a task"`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from steersman import Agent, Allow, Deny, Hooks, TurnResult
from steersman.hooks import PreToolUse, Reply, deny
from steersman.permissions import Decision, PermissionContext

hooks = Hooks()


@hooks.on(PreToolUse, "Bash")
def refuse_downloads(event: PreToolUse) -> Reply | None:
    """Deny downloads without asking the user; `None` leaves other calls to the usual rules."""
    if "curl" in str(event.tool_input.get("command", "")):
        return deny("No downloads here.")
    return None


class AskUser:
    """Asks the user in the terminal; a real program would ask in a chat or on a web page."""

    def __init__(self, ask: Callable[[str], str] = input) -> None:
        self._ask = ask

    async def __call__(
        self, tool_name: str, tool_input: dict[str, Any], _: PermissionContext
    ) -> Decision:
        """Decide about one call. The session continues to read while the user thinks."""
        answer = await asyncio.to_thread(self._ask, f"{tool_name} {tool_input}? [y/N] ")
        return Allow() if answer.strip() == "y" else Deny("The user refused.")


async def work(agent: Agent, task: str) -> TurnResult:
    """Do the task, and print the answer and the calls that were denied."""
    async with agent.session() as session:
        result = await (await session.send(task))
    print(result.answer)
    for denial in result.permission_denials:
        print("denied:", denial.get("tool_name"), denial.get("tool_input"))
    return result


if __name__ == "__main__":
    agent = Agent(hooks=hooks, can_use_tool=AskUser())
    asyncio.run(work(agent, " ".join(sys.argv[1:]) or "List the files here with ls -l."))
