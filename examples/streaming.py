"""One conversation, several prompts: answers as they grow, an interrupt, prompts from a generator.

Run it with `python examples/streaming.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from steersman import Agent, Assistant, Session


async def say(session: Session, prompt: str, *, stop: bool = False) -> str:
    """Print the answer while it is written, or stop it at once; return how the turn ended."""
    print(f"> {prompt}")
    turn = await session.send(prompt)
    async for chunk in turn.text():
        print(chunk, end="", flush=True)
        if stop:
            await turn.interrupt()
    result = await turn
    print(f"  [{result.outcome}]")
    return result.outcome


async def talk(agent: Agent) -> list[str]:
    """Hold one conversation; another task counts the messages of it."""

    async def count(session: Session) -> int:
        return len([each async for each in session.messages() if isinstance(each, Assistant)])

    async with agent.session() as session:
        counting = asyncio.ensure_future(count(session))
        outcomes = [
            await say(session, "What is the capital of France?"),
            await say(session, "Count from 1 to 100, slowly.", stop=True),
            # The conversation is the same: Claude knows what was asked before.
            await say(session, "And how many people live there?"),
        ]
    print(f"{await counting} messages of the model")
    return outcomes


async def questions() -> AsyncIterator[str]:
    """Yield prompts as they come, such as lines of a queue."""
    for each in ("What is 2 + 2?", "And 4 times that?"):
        yield each


async def from_a_generator(agent: Agent) -> list[str]:
    """Answer the prompts of a generator in one conversation."""
    messages = agent.query(questions())
    return [each.text async for each in messages if isinstance(each, Assistant) and each.text]


if __name__ == "__main__":
    asyncio.run(talk(Agent()))
    print(asyncio.run(from_a_generator(Agent())))
