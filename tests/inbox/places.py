"""Where an inbox keeps its asks, for tests that hold for all of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steersman.inbox import Inbox, StoredInbox
from steersman.permissions import Ask, CanUseTool, Payload
from steersman.stores import PostgresStore, SqliteStore

LIMIT = 10.0
TOOL = CanUseTool(tool_name="Bash", input={"command": "ls", "timeout": 5}, tool_use_id="t1")
OTHER = CanUseTool(tool_name="Bash", input={"command": "rm"}, tool_use_id="t1")
AnyInbox = Inbox | StoredInbox
Store = SqliteStore | PostgresStore

_ids = itertools.count(1)


def an_ask(
    payload: Payload = TOOL, *, session: str = "s1", turn: str | None = "u1", id_: str = ""
) -> Ask:
    """An ask with an id of its own: no two requests of CLIs have the same."""
    return Ask(id=id_ or f"q{next(_ids)}", session=session, payload=payload, created=1.0, turn=turn)


class Place:
    """Makes inboxes; each store is as one process has it."""

    def __init__(self, make: Callable[[], Store] | None) -> None:
        self._make = make
        self._stores: list[Store] = []
        self.is_durable = make is not None

    def inbox(self, *, expires_after: float | None = None) -> Any:
        """An inbox of a process of its own, if the place outlives processes."""
        if self._make is None:
            return Inbox(expires_after=expires_after)
        return self.store().inbox(expires_after=expires_after)

    def store(self) -> Store:
        """A store, as another process has it."""
        assert self._make is not None
        self._stores.append(self._make())
        return self._stores[-1]

    async def aclose(self) -> None:
        """Close all stores."""
        for store in self._stores:
            await store.aclose()


def in_memory() -> Place:
    """Asks in this process only."""
    return Place(None)


def in_sqlite(path: Path) -> Place:
    """Asks in a file."""
    return Place(lambda: SqliteStore(path))


def in_postgres(url: str) -> Place:
    """Asks on a server."""
    return Place(lambda: PostgresStore(url))


class Session:
    """Opens asks as a session does, and keeps the answers."""

    def __init__(self, inbox: AnyInbox) -> None:
        self.inbox = inbox
        self.got: list[tuple[Any, str]] = []
        self.faults: list[BaseException] = []
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def open(self, ask: Ask) -> Ask:
        """Open an ask."""

        def settle(answer: Any, by: str) -> None:
            self.got.append((answer, by))
            self._loop.call_soon_threadsafe(self._news.set)

        if isinstance(self.inbox, StoredInbox):
            self.inbox.keep(ask, settle, self.faults.append)
        else:
            self.inbox.open(ask, settle)
        return ask

    async def answers(self, count: int = 1) -> list[tuple[Any, str]]:
        """The answers, once there are `count`."""
        async with asyncio.timeout(LIMIT):
            while len(self.got) < count:
                await self._news.wait()
                self._news.clear()
        return self.got

    async def shown(self, count: int = 1) -> list[Ask]:
        """The open asks, once there are `count`."""
        async with asyncio.timeout(LIMIT):
            while len(found := await listed(self.inbox)) != count:  # noqa: ASYNC110 - not our own
                await asyncio.sleep(0.005)
        return found


async def listed(inbox: AnyInbox) -> list[Ask]:
    """The open asks, in memory or in a store."""
    return await inbox.list()


async def until(is_so: Callable[[], object]) -> None:
    """Return once something is so that sets no event here."""
    async with asyncio.timeout(LIMIT):
        while not is_so():  # noqa: ASYNC110 - a thread or another process does it
            await asyncio.sleep(0.005)
