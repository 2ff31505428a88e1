"""A conversation has one owner at a time, and the next one may wait for it."""

from __future__ import annotations

import asyncio
import os

import pytest

from steersman import Agent
from steersman._session.ownership import ENDING, Ownership
from steersman.errors import ChannelClosed, SessionInUse
from steersman.testing.faults import VirtualClockLoop
from steersman.testing.script import Script, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

ID = "11111111-1111-4111-8111-111111111111"


class Locks:
    """Locks whose owner goes away at a moment of the loop's clock."""

    def __init__(self, free_at: float, *, is_ending: bool = False) -> None:
        self.free_at = free_at
        self.is_ending = is_ending
        self.seen: list[tuple[str, object]] = []

    def claim(self, session_id: str) -> Locks:
        if asyncio.get_running_loop().time() < self.free_at:
            raise SessionInUse("in use", pid=7, is_ending=self.is_ending)
        self.seen.append(("claim", session_id))
        return self

    def runs(self, pid: int | None) -> None:
        self.seen.append(("runs", pid))

    def ends(self) -> None:
        self.seen.append(("ends", None))

    def release(self) -> None:
        self.seen.append(("release", None))


def wanted() -> bool:
    return False


async def many_steps() -> None:
    """Let other tasks take as many steps as a start in memory needs."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_the_second_opener_of_a_conversation_is_told_who_has_it() -> None:
    agent = Agent(transport=ScriptedCLI(Script(say("Paid."))), session_id=ID)

    async with asyncio.timeout(5), agent.session() as first:
        second = agent.session()
        with pytest.raises(SessionInUse) as no:
            await second.start()
        result = await (await first.send("pay"))

    assert (no.value.pid, second.state) == (os.getpid(), "failed")
    assert (no.value.since or 0) > 0
    assert (result.outcome, result.text) == ("completed", "Paid.")


async def test_the_second_opener_may_wait_until_the_first_has_closed() -> None:
    cli = ScriptedCLI()
    agent = Agent(transport=cli, session_id=ID)

    async with asyncio.timeout(5):
        first = await agent.start()
        second = asyncio.create_task(agent.start(wait=4))
        await many_steps()
        running = cli.running
        await first.aclose()
        owner = await second
        await owner.aclose()

    assert (owner.id, running) == (ID, 1)


async def test_a_session_that_is_closed_while_it_waits_does_not_start() -> None:
    agent = Agent(transport=ScriptedCLI(), session_id=ID)

    async with asyncio.timeout(5), agent.session():
        waiting = agent.session(wait=60)
        start = asyncio.create_task(waiting.start())
        await many_steps()
        assert waiting.state == "starting"
        await waiting.aclose()
        with pytest.raises(ChannelClosed):
            await start

    assert waiting.state in ("completed", "cancelled")


async def test_a_session_that_was_cancelled_or_failed_to_start_owns_nothing() -> None:
    agent = Agent(transport=ScriptedCLI(Script(stall())), session_id=ID)

    async with asyncio.timeout(5):
        cancelled = await agent.start("go")
        await cancelled.cancel()
        abandoned = await agent.start()
        abandoned.abandon()
        await abandoned.aclose()
        async with agent.session() as session:
            assert session.id == ID


async def test_the_next_owner_waits_for_one_that_is_closing() -> None:
    agent = Agent(transport=ScriptedCLI(), session_id=ID)

    async with asyncio.timeout(5):
        first = await agent.start()
        first.abandon()
        async with agent.session() as second:
            assert (first.state, second.id) == ("completed", ID)


async def test_a_fork_takes_nothing_from_the_conversation_that_it_is_made_from() -> None:
    agent = Agent(transport=ScriptedCLI(Script(say("one"), say("two"))), session_id=ID)

    async with asyncio.timeout(5), agent.session() as first:
        await (await first.send("go"))
        async with first.fork() as fork:
            assert fork.id != first.id


async def test_a_conversation_that_is_not_saved_has_no_owner() -> None:
    agent = Agent(transport=ScriptedCLI(), session_id=ID, persist_session=False)

    async with asyncio.timeout(5), agent.session(), agent.session() as second:
        assert second.id == ID


def test_waiting_ends_after_the_given_seconds() -> None:
    async def waits(wait: float) -> float:
        clock = asyncio.get_running_loop().time
        began = clock()
        with pytest.raises(SessionInUse):
            await Ownership(Locks(free_at=began + 1000).claim, wait).take(ID, wanted)
        return clock() - began

    async def both() -> tuple[float, float]:
        return await waits(0.0), await waits(30.0)

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        at_once, later = runner.run(both())

    assert at_once == 0
    assert later == pytest.approx(30, abs=0.1)


def test_an_owner_that_is_ending_is_waited_for_a_moment_also_without_wait() -> None:
    async def take(free_after: float) -> Locks:
        locks = Locks(asyncio.get_running_loop().time() + free_after, is_ending=True)
        await Ownership(locks.claim, 0.0).take(ID, wanted)
        return locks

    async def refused() -> None:
        with pytest.raises(SessionInUse):
            await take(ENDING + 1)

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        locks = runner.run(take(ENDING / 2))
        runner.run(refused())

    assert ("claim", ID) in locks.seen


async def test_an_owner_writes_down_its_cli_and_follows_the_conversation() -> None:
    locks = Locks(0)
    ownership = Ownership(locks.claim, 0.0)

    await ownership.take(None, wanted)
    assert locks.seen == []
    await ownership.take(ID, wanted)
    ownership.runs(7)
    ownership.follow(ID)
    ownership.follow("another")
    ownership.ends()
    ownership.release()
    ownership.release()

    assert locks.seen == [
        ("claim", ID),
        ("runs", 7),
        ("claim", "another"),
        ("runs", 7),
        ("ends", None),
        ("ends", None),
        ("release", None),
        ("release", None),
    ]
