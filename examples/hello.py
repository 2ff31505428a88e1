"""One prompt: its text as it arrives, and its cost.

Run it with `python examples/hello.py "your prompt"`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent, TurnResult


async def ask(agent: Agent, prompt: str) -> TurnResult:
    """Print the answer while the model writes it, and return the result."""
    async with agent.session() as session:
        turn = await session.send(prompt)
        async for chunk in turn.text():
            print(chunk, end="", flush=True)
        result = await turn
    print(f"\n[{result.outcome}, {result.cost_usd:.4f} USD]")
    return result


if __name__ == "__main__":
    asyncio.run(ask(Agent(), " ".join(sys.argv[1:]) or "Say hello in three languages."))
