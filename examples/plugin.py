"""A plugin: a folder with a command of yours, loaded for one session.

Run it with `python examples/plugin.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from steersman import Agent

MANIFEST = {"name": "demo", "description": "Greets.", "version": "1.0.0"}
GREET = "---\ndescription: Greet somebody\n---\nGreet $ARGUMENTS in one short sentence.\n"


def write_plugin(folder: Path) -> Path:
    """Write a plugin with one slash command, `/demo:greet`."""
    for name, text in {
        ".claude-plugin/plugin.json": json.dumps(MANIFEST),
        "commands/greet.md": GREET,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


async def greet(agent: Agent, plugin: Path, who: str) -> str:
    """Run the plugin's command."""
    async with agent.session(plugins=[plugin]) as session:
        names = [each.name for each in session.initialized.commands]
        print("commands of the plugin:", [name for name in names if name.startswith("demo:")])
        result = await (await session.command(f"/demo:greet {who}"))
    print(result.text)
    return result.text


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(greet(Agent(), write_plugin(Path(directory)), "Ada"))
