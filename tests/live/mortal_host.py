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
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from steersman import Agent
from steersman.permissions import Policy
from steersman.stores._sql.database import Database
from tests.live.durable import CUSTOMER, INVOICE, store_at

GO = "leave now"
"""The file that tells the host to leave."""


left = float("inf")
"""How many ends of calls of the store are left; each call has two."""


def end_of_call() -> None:
    """Count the end of a call, and be killed at the last one."""
    global left  # noqa: PLW0603 - of a program
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)


def make_mortal(database: Database) -> None:
    """Have the process be killed before or after one of the calls of a database."""
    for name in ("read", "write"):
        setattr(database, name, _counted(getattr(database, name)))


def _counted(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def counted(*given: Any, **named: Any) -> Any:
        end_of_call()
        found = await call(*given, **named)
        end_of_call()
        return found

    return counted


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
        global left  # noqa: PLW0603 - as above
        left = float("inf") if dies_at is None else dies_at

    def terminated() -> None:
        leaves()
        mine.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated)
    async with store_at(given.pop("store")) as store:
        make_mortal(store._database)
        agent = Agent(inbox=store.inbox(), policy=policy, **given)
        async with agent.open(CUSTOMER) as session:
            await session.send("pay", key=INVOICE)
            await until_told(folder)
            leaves()
            await (session.park() if leave == "park" else session.aclose())


if __name__ == "__main__":
    with suppress(asyncio.CancelledError):
        asyncio.run(main(json.loads(sys.argv[1])))
