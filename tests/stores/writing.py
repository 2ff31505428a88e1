"""A program that writes to a session store: `python -m tests.stores.writing KIND PLACE NAME COUNT`.

It prints a line after each batch. With a limit, files may not grow beyond so many bytes: a write
beyond that is an error, or, with `dies`, the end of the program.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from typing import Any

from steersman.errors import StoreError
from steersman.stores import DirectoryStore, PostgresStore, SqliteStore
from steersman.transcripts.keys import SessionKey, SessionStoreEntry

KEY: SessionKey = {"project_key": "-p", "session_id": "shared"}
BATCH = 5


def batch_of(name: str, number: int, size: int = 10) -> list[SessionStoreEntry]:
    """Return a batch that can be told from all others, whose last entry has no uuid."""
    entries: list[Any] = [
        {"type": "user", "uuid": f"{name}-{number}-{at}", "text": "x" * size}
        for at in range(BATCH - 1)
    ]
    return [*entries, {"type": "tag", "tag": f"{name}-{number}"}]


def make(kind: str, place: str) -> Any:
    """Return a store of a kind."""
    kinds: Any = {
        "directory": DirectoryStore,
        "sqlite": SqliteStore,
        "postgres": PostgresStore,
    }
    return kinds[kind](place)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(kind: str, place: str, name: str, count: str, limit: str = "0", *how: str) -> None:
    store = make(kind, place)
    await store.positions(KEY)
    size = 10
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
        size = 20_000
        if "dies" in how:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for number in range(int(count)):
        try:
            await store.append(KEY, batch_of(name, number, size))
        except StoreError as error:
            say(f"failed {number} {str(error).splitlines()}")
            break
        say(f"stored {number}")
    if "leaves it open" not in how:
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
