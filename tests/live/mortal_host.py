"""A host that leaves when it is told to, and is killed at one call of its store: a program.

`python -m tests.live.mortal_host JSON`. It counts the calls of its store from the moment when it
begins to leave.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from steersman import Agent
from steersman.permissions import Policy
from steersman.stores._sql.database import Work
from steersman.stores._sql.sqlite_database import SqliteDatabase
from steersman.stores._sql.store import SqlStore
from tests.live.durable import CUSTOMER, INVOICE

__all__ = ["GO"]

GO = "leave now"
"""The file that tells the host to leave."""


class Mortal(SqliteDatabase):
    """A database at one of whose calls the process is killed, before or after it."""

    left: float = float("inf")
    """How many ends of calls are left; each call has two."""

    async def read(self, work: Work[Any]) -> Any:
        self._end()
        found = await super().read(work)
        self._end()
        return found

    async def write(self, work: Work[Any], *, is_vital: bool = False) -> Any:
        self._end()
        found = await super().write(work, is_vital=is_vital)
        self._end()
        return found

    @staticmethod
    def _end() -> None:
        Mortal.left -= 1
        if Mortal.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def until_told(folder: Path) -> None:
    """Return when the host shall leave."""
    while not (folder / GO).exists():  # noqa: ASYNC110 - another process makes the file
        await asyncio.sleep(0.01)


async def main(given: dict[str, Any]) -> None:
    """Send the prompt, and leave as the test says."""
    leave, dies_at, folder = given.pop("leave"), given.pop("dies_at"), Path(given.pop("folder"))
    policy = Policy(otherwise="ask") if given.pop("is_exact") else None
    mine = asyncio.current_task()
    assert mine is not None

    def leaves() -> None:
        Mortal.left = float("inf") if dies_at is None else dies_at

    def terminated() -> None:
        leaves()
        mine.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated)
    path = Path(given.pop("store"))
    async with SqlStore(Mortal(path, 30.0), SqliteDatabase(path, 30.0)) as store:
        agent = Agent(inbox=store.inbox(), policy=policy, **given)
        async with agent.open(CUSTOMER) as session:
            await session.send("pay", key=INVOICE)
            await until_told(folder)
            leaves()
            await (session.park() if leave == "park" else session.aclose())


if __name__ == "__main__":
    with suppress(asyncio.CancelledError):
        asyncio.run(main(json.loads(sys.argv[1])))
