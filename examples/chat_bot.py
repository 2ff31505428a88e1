"""A chat bot: one conversation per thread, which continues after a restart of the program.

Run it with `python examples/chat_bot.py`, and write lines such as `general 17 Hello!`: the thread,
the id of the message, the text. A message that is delivered twice is answered once. It uses your
own login.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent, Session


class Bot:
    """Answers messages. Each thread has a session, opened with its first message."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._sessions: dict[str, Session] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    async def answer(self, thread: str, message_id: str, text: str) -> str:
        """Return the answer to a message; the same message again has the same answer."""
        async with self._opening.setdefault(thread, asyncio.Lock()):
            session = self._sessions.get(thread)
            if session is None or session.phase.is_over:
                session = self._sessions[thread] = await self._agent.open(f"thread {thread}")
        result = await (await session.send(text, key=message_id))
        return result.answer or result.text or f"({result.reason})"

    async def close(self) -> None:
        """Close all sessions. Their conversations can be opened again later."""
        await asyncio.gather(*(session.aclose() for session in self._sessions.values()))


async def main(agent: Agent) -> None:
    """Answer the messages on stdin; threads do not wait for each other."""
    bot = Bot(agent)

    async def reply(thread: str, message_id: str, text: str) -> None:
        print(f"{thread} {message_id}: {await bot.answer(thread, message_id, text)}", flush=True)

    try:
        async with asyncio.TaskGroup() as group:
            while line := await asyncio.to_thread(sys.stdin.readline):
                thread, _, rest = line.strip().partition(" ")
                message_id, _, text = rest.partition(" ")
                if text:
                    group.create_task(reply(thread, message_id, text))
    finally:
        await bot.close()


if __name__ == "__main__":
    asyncio.run(main(Agent(tools=[])))
