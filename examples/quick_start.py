"""The first steps: one question, options for one question, and a tool.

Run it with `python examples/quick_start.py`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio

from steersman import Agent, Assistant, Result


async def ask(agent: Agent) -> str:
    """Ask one question, with options of its own, and return the text of the answer."""
    result = await agent.run(
        "What is Python? One sentence.", system_prompt="You explain to children.", max_turns=1
    )
    return result.text


async def make_a_file(agent: Agent) -> None:
    """Let Claude write a file, and print each message as it arrives."""
    prompt = "Create a file hello.txt with the text 'Hello, World!'."
    async for message in agent.query(prompt, allowed_tools=["Read", "Write"]):
        match message:
            case Assistant(text=text) if text:
                print(f"Claude: {text}")
            case Assistant():
                print("Claude uses", ", ".join(call.name for call in message.tool_uses))
            case Result():
                print(f"done for {message.total_cost_usd or 0:.4f} USD")
            case _:
                pass


async def main() -> None:
    """Do both, one after the other."""
    agent = Agent()
    print(await ask(agent))
    await make_a_file(agent)


if __name__ == "__main__":
    asyncio.run(main())
