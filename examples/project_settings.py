"""A project's own files: its commands, agents, skills and `CLAUDE.md`, if you ask for them.

Run it with `python examples/project_settings.py`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from steersman import Agent
from steersman.options import SettingSource

REVIEWER = """---
name: reviewer
description: Reviews code.
tools: Read
---
You review code.
"""


def prepare(folder: Path) -> None:
    """Write an agent and a slash command to the folder, unless there are some."""
    for name, text in {
        "agents/reviewer.md": REVIEWER,
        "commands/commit.md": "Write a commit message for the staged changes.",
    }.items():
        file = folder / ".claude" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(text, encoding="utf-8")


async def found(agent: Agent, *sources: SettingSource) -> tuple[bool, bool]:
    """Return whether the CLI has read the project's command and its agent; no prompt is sent."""
    async with agent.session(setting_sources=sources) as session:
        known = session.initialized
        has_command = "commit" in {each.name for each in known.commands}
        has_agent = "reviewer" in {each.name for each in known.agents}
    print(f"{sources or 'no sources'}: command {has_command}, agent {has_agent}")
    return has_command, has_agent


if __name__ == "__main__":
    prepare(Path.cwd())
    agent = Agent()
    asyncio.run(found(agent))
    asyncio.run(found(agent, "project"))
