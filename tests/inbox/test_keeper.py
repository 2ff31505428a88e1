"""The thread of an inbox ends only when everything that it began has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from steersman.inbox.changes import Watch
from steersman.inbox.keeper import LINGER, AskKeeper
from steersman.inbox.stored import StoredInbox
from steersman.inbox.waiting import Waiting
from steersman.permissions import Ask, CanUseTool
from steersman.stores.ask_table import AskTable
from steersman.stores.sqlite_asks import sqlite_asks
from tests.simulation.durable.world import LoopKeeper, SimLoop

LIMIT = 20.0


class SlowToEnd:
    """The rows of a file, where a listener takes some steps of its loop to end."""

    def __init__(self, rows: AskTable, ended: Callable[[], None]) -> None:
        self._rows = rows
        self._ended = ended

    def __getattr__(self, name: str) -> object:
        return getattr(self._rows, name)

    async def signal(self, changed: Callable[[], None]) -> None:
        try:
            await self._rows.signal(changed)
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            self._ended()


async def test_a_listener_has_closed_its_connection_before_the_thread_ends(tmp_path: Path) -> None:
    ended: list[bool] = []
    keeper = AskKeeper(
        lambda: SlowToEnd(sqlite_asks(tmp_path / "asks.db", 5.0), lambda: ended.append(True))  # type: ignore[arg-type,return-value]  # the rest by `__getattr__`
    )
    inbox = StoredInbox(keeper)
    watch: Watch = inbox.watch()

    async with asyncio.timeout(LIMIT):
        await inbox.list()
        await watch.aclose()
        await keeper.aclose()

    assert ended == [True]


class FailsOnce:
    """The rows of a file, where the first look for changes meets a defect."""

    def __init__(self, rows: AskTable) -> None:
        self._rows = rows
        self._has_failed = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._rows, name)

    async def last_change(self) -> int:
        if not self._has_failed:
            self._has_failed = True
            raise RuntimeError("a defect")
        return await self._rows.last_change()


async def test_the_thread_outlives_a_defect_and_says_so_meanwhile(tmp_path: Path) -> None:
    rows = FailsOnce(sqlite_asks(tmp_path / "asks.db", 5.0))
    keeper = AskKeeper(lambda: rows)  # type: ignore[arg-type,return-value]  # the rest by `__getattr__`
    loop, seen = asyncio.get_running_loop(), asyncio.Event()

    def awake() -> None:
        loop.call_soon_threadsafe(seen.set)

    async with asyncio.timeout(LIMIT):
        keeper.observe(awake)
        await seen.wait()
        faults = keeper.faults
        found = await StoredInbox(keeper).list()
        await keeper.aclose()

    assert faults == {"the thread of asks": "RuntimeError: a defect"}
    assert found == []


def test_an_ask_that_comes_at_the_moment_at_which_the_thread_would_end_is_stored(
    tmp_path: Path,
) -> None:
    """As after a stop of the process: its timers and what it is given are due at once."""
    ask = Ask(
        id="1", session="s", payload=CanUseTool(tool_name="Bash", input={}), created=0.0, turn="t"
    )

    async def work() -> list[str]:
        keeper = LoopKeeper(lambda: sqlite_asks(tmp_path / "asks.db", 5.0))
        inbox = StoredInbox(keeper)
        await inbox.list()
        loop = asyncio.get_running_loop()
        waiting = Waiting(ask, lambda *_: None, lambda _: None, None, loop)
        loop.call_at(loop.time() + LINGER - 1e-10, keeper.keep, waiting)
        await asyncio.sleep(3 * LINGER)
        return [each.id for each in await inbox.list()]

    with asyncio.Runner(loop_factory=SimLoop) as runner:
        assert runner.run(work()) == ["1"]
