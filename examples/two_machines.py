"""A conversation that continues on any machine: its entries are in a PostgreSQL database.

Run it on one machine, and then on another one, in a directory of the same path:

    python examples/two_machines.py postgresql://user@host/database "customer 7" "I am Ann."
    python examples/two_machines.py postgresql://user@host/database "customer 7" "Who am I?"

Instead of a database you may pass the path of an SQLite file; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Agent
from steersman.messages import MirrorError
from steersman.stores import PostgresStore, SqliteStore


def open_store(place: str) -> PostgresStore | SqliteStore:
    """Return the store at a URL, or in a file."""
    return PostgresStore(place) if place.startswith("postgres") else SqliteStore(place)


async def ask(agent: Agent, customer: str, prompt: str) -> str:
    """Continue the conversation of a customer, wherever it was last; return the answer."""
    async with agent.open(customer) as session:
        result = await session.run(prompt)
    # After the end: what the store did not take. The next session on this machine appends it.
    async for message in session.messages():
        if isinstance(message, MirrorError):
            print(f"not in the store yet: {message.error}", file=sys.stderr)
    return result.answer


async def main(place: str, customer: str, prompt: str) -> None:
    """Ask one question and print the answer."""
    async with open_store(place) as store:
        print(await ask(Agent(session_store=store), customer, prompt))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
