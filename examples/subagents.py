"""Subagents: the model hands work to agents of yours, and you see which one did what.

Run it with `python examples/subagents.py "a task"`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent
from steersman.journal.tasks import AgentNode
from steersman.options import AgentDefinition

AGENTS = {
    "reader": AgentDefinition(
        description="Reads files and summarizes them.",
        prompt="You read files and summarize them in one sentence each.",
        tools=("Read", "Glob", "Grep"),
    ),
    "critic": AgentDefinition(
        description="Looks for mistakes in a summary.",
        prompt="You look for mistakes. You change no files.",
        tools=("Read",),
    ),
}


def show(node: AgentNode, depth: int = 0) -> None:
    """Print a subagent, its calls, and its own subagents."""
    print(f"{'  ' * depth}{node.subagent_type or 'agent'}: {node.description} [{node.state}]")
    for call in node.tool_calls:
        print(f"{'  ' * depth}  {call.name} {dict(call.input)}")
    for child in node.children:
        show(child, depth + 1)


async def work(agent: Agent, task: str) -> str:
    """Do the task, and print the tree of subagents."""
    async with agent.session() as session:
        result = await (await session.send(task))
    for node in result.agents:
        show(node)
    print(result.answer)
    return result.answer


if __name__ == "__main__":
    task = " ".join(sys.argv[1:]) or "Have the reader summarize README.md, then ask the critic."
    asyncio.run(work(Agent(agents=AGENTS, allowed_tools=["Agent", "Read", "Glob", "Grep"]), task))
