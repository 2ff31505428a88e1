"""A budget of the CLI itself: `max_budget_usd` ends a conversation that becomes too expensive.

`limits=` stops sooner, and counts more than money: see `budget.py`.
Run it with `python examples/max_budget.py "a task"`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent
from steersman.errors import TurnFailed, TurnStopped


async def work(agent: Agent, task: str, usd: float) -> float:
    """Do the task for at most about this much; returns what it cost."""
    try:
        result = await agent.run(task, max_budget_usd=usd)
    except TurnFailed as error:
        stopped = isinstance(error.__cause__, TurnStopped)
        print("over the budget:" if stopped else "failed:", error.reason)
        return error.cost_usd
    print(f"{result.text}\n[{result.cost_usd:.4f} USD]")
    return result.cost_usd


if __name__ == "__main__":
    asyncio.run(work(Agent(), " ".join(sys.argv[1:]) or "Read README.md and summarize it.", 0.05))
