"""Steering: correct a turn while it works, withdraw a prompt, and stop a turn.

Run it with `python examples/steer.py "a task"`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent, TurnResult


async def work(agent: Agent, task: str, correction: str) -> TurnResult:
    """Do the task, correct it at its next tool call, and stop it after a minute."""
    async with agent.session() as session:
        turn = await session.send(task)
        await turn.begun()
        steered = await session.send(correction, when="next")
        late = await session.send("And now the same for every other folder.")
        print("withdrawn:", await late.withdraw())
        try:
            async with asyncio.timeout(60):
                result = await turn
        except TimeoutError:
            receipt = await turn.interrupt()
            print("stopped; still queued:", receipt.still_queued)
            result = await turn
        print(result.answer)
        print(f"{result.outcome}; the correction was {steered.delivery}")
        return result


if __name__ == "__main__":
    task = " ".join(sys.argv[1:]) or "Count the lines of every Python file here, one by one."
    asyncio.run(work(Agent(allowed_tools=["Bash", "Read"]), task, "Leave out the tests."))
