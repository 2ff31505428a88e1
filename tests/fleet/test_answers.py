"""Every conversation that can be continued is signalled, whatever fails on the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

from steersman._background import BackgroundTasks
from steersman.errors import StoreError
from steersman.fleet.answers import AnswerSignals
from steersman.ports import Conversation
from steersman.testing.faults import VirtualClockLoop


def conversation(name: str) -> Conversation:
    return Conversation(key=name, session=name, machine="m")


class Store:
    """Yields each conversation once, as `ready()` does, and after a failure all of them again."""

    def __init__(self, *names: str, fails_after: int = 99) -> None:
        self.names = names
        self.fails_after = fails_after
        self.read = 0

    async def ready(self) -> AsyncGenerator[Conversation]:
        self.read += 1
        for number, name in enumerate(self.names):
            if number >= self.fails_after and self.read == 1:
                raise StoreError("the disk is full")
            yield conversation(name)
        await asyncio.Event().wait()


def signalled(store: Store, faults: dict[str, int]) -> tuple[list[str], list[float]]:
    """The conversations in the order in which their signals arrived, and when they did."""
    arrived: list[str] = []
    times: list[float] = []

    async def signal(each: Conversation) -> None:
        if faults.get(each.session, 0) > 0:
            faults[each.session] -= 1
            raise StoreError("the database was restarted")
        arrived.append(each.session)
        times.append(asyncio.get_running_loop().time())

    async def run() -> None:
        background = BackgroundTasks(logging.getLogger("steersman.tests"))
        AnswerSignals(store.ready, signal).keep_in(background, "the answers")
        while {*arrived} != {*store.names}:  # noqa: ASYNC110 - the time is virtual
            await asyncio.sleep(0.1)
        await background.aclose()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(run())
    return arrived, times


def test_a_conversation_whose_signal_fails_is_signalled_again_and_holds_up_no_other() -> None:
    arrived, times = signalled(Store("a", "b", "c"), {"a": 3})

    assert arrived == ["b", "c", "a"]
    assert times[1] < 0.5 < times[2] < 10.0


def test_conversations_behind_a_failure_of_the_store_are_read_again() -> None:
    store = Store("a", "b", "c", fails_after=1)

    arrived, _ = signalled(store, {})

    assert store.read == 2
    assert {*arrived} == {"a", "b", "c"}
