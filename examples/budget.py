"""A budget: a turn that becomes too expensive is interrupted, and so is one that takes too long.

Run it with `python examples/budget.py "a task"`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent, TurnResult
from steersman.errors import LimitReached
from steersman.options import Caps, Limits

LIMITS = Limits(turn=Caps(usd=0.05, tool_calls=20, seconds=300), session=Caps(usd=0.25))


async def work(agent: Agent, *tasks: str) -> list[TurnResult]:
    """Do the tasks one after the other, and print what each of them cost."""
    results: list[TurnResult] = []
    async with agent.session() as session:
        for task in tasks:
            try:
                turn = await session.send(task)
            except LimitReached as error:
                print(f"not sent: {error.what}")
                break
            result = await turn
            results.append(result)
            print(f"{result.outcome}: {result.cost_usd:.4f} USD, {len(result.tool_calls)} calls")
            if isinstance(result.cause, LimitReached):
                print(f"stopped: {result.cause.what}")
    print(f"together {session.cost_usd:.4f} USD")
    return results


if __name__ == "__main__":
    asyncio.run(work(Agent(limits=LIMITS), *(sys.argv[1:] or ["Explain what this folder holds."])))
