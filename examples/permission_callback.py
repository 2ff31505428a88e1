"""A permission callback: allow, deny, and change what a tool is called with.

Run it with `python examples/permission_callback.py`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from steersman import Agent, Allow, Deny
from steersman.permissions import Decision, PermissionContext

DANGEROUS = ("rm -rf", "sudo", "chmod 777")


class Callback:
    """Decides about each call that the CLI would ask a person about, and keeps a list of them."""

    def __init__(self, safe: Path) -> None:
        self.safe = safe
        self.calls: list[str] = []

    async def __call__(
        self, tool_name: str, tool_input: dict[str, Any], context: PermissionContext
    ) -> Decision:
        """Decide about one call; `context.suggestions` has what the CLI would remember."""
        self.calls.append(f"{tool_name}, because: {context.decision_reason or 'it asks first'}")
        if tool_name in ("Write", "Edit"):
            # Every file is written below one folder, whatever the model asked for.
            inside = self.safe / Path(tool_input["file_path"]).name
            return Allow(updated_input={**tool_input, "file_path": str(inside)})
        if tool_name == "Bash":
            command = tool_input["command"]
            found = next((each for each in DANGEROUS if each in command), None)
            return Deny(f"{found!r} is not allowed here.") if found else Allow()
        return Deny(f"{tool_name} is not needed for this task.")


async def work(agent: Agent, task: str, callback: Callback) -> str:
    """Do the task, and print each call that was decided about."""
    result = await agent.run(task, can_use_tool=callback)
    for each in callback.calls:
        print("asked about", each)
    print(result.text)
    return result.text


if __name__ == "__main__":
    folder = Path.cwd() / "safe"
    folder.mkdir(exist_ok=True)
    task = "Write a greeting in Python to hello.py, and run it."
    asyncio.run(work(Agent(), task, Callback(folder)))
