"""A chat in the terminal: Ctrl-C stops the answer, and a second Ctrl-C leaves.

Run it with `python examples/terminal_chat.py`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from steersman import Agent, Session, Turn


class Chat:
    """One conversation with the terminal."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn: Turn | None = None
        self.is_leaving = asyncio.Event()

    def stop(self) -> None:
        """Stop the answer that is being written; if there is none, leave."""
        if self._turn is None or self._turn.is_settled:
            self.is_leaving.set()
            return
        self._stopping = asyncio.ensure_future(self._turn.interrupt())

    async def ask(self, text: str) -> None:
        """Send a prompt, and print the answer while it is written."""
        self._turn = await self._session.send(text)
        async for chunk in self._turn.text():
            print(chunk, end="", flush=True)
        result = await self._turn
        print(f"\n[{result.outcome}, {self._session.cost_usd:.4f} USD]", flush=True)


async def main(agent: Agent) -> None:
    """Read prompts from stdin until its end, or until a Ctrl-C while nothing is being written."""
    loop = asyncio.get_running_loop()
    typed = asyncio.StreamReader()
    # Not in a thread: a thread that waits for a line could not be left.
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(typed), sys.stdin)
    async with agent.session() as session:
        chat = Chat(session)
        loop.add_signal_handler(signal.SIGINT, chat.stop)
        leaving = asyncio.ensure_future(chat.is_leaving.wait())
        while True:
            print("> ", end="", flush=True)
            reading = asyncio.ensure_future(typed.readline())
            await asyncio.wait([reading, leaving], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done() or not (line := reading.result().decode()):
                break
            if line.strip():
                await chat.ask(line.strip())
        leaving.cancel()
        reading.cancel()
    print()


if __name__ == "__main__":
    asyncio.run(main(Agent()))
