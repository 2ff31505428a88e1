"""The end of a run waits for background work, but not for ever. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest

from steersman._session.steering import CEILING, ceiling_of
from steersman.agent import Agent, Session
from steersman.errors import RequestTimeout
from steersman.journal import Entry, Kind
from steersman.testing.faults import VirtualClockLoop
from tests._session.peers import INIT, Frame, FramePeer, lifecycle, result, state, text

T = TypeVar("T")


def in_virtual_time(doing: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(doing)


def now() -> float:
    return asyncio.get_running_loop().time()


def working_on(peer: FramePeer, frame: Frame) -> None:
    """It answers, and reports background work that never ends."""
    if frame["type"] == "user":
        uuid = frame["uuid"]
        peer.say(state("running"), lifecycle(uuid, "started"), text("hi"), result([uuid]))


async def started(peer: FramePeer, **env: str) -> Session:
    session = await Agent(transport=peer.transport, env=env).start("go")
    await session.turns[0]
    return session


@pytest.mark.parametrize(("env", "seconds"), [({}, 600), ({CEILING: "5000"}, 5)])
def test_background_work_is_waited_for_as_long_as_the_variable_allows(
    env: dict[str, str], seconds: float
) -> None:
    async def play() -> tuple[float, list[Any]]:
        session = await started(FramePeer(working_on), **env)
        begun = now()
        await session.finish()
        took = now() - begun
        entries = [each async for each in session.journal() if isinstance(each, Entry)]
        return took, [each.details for each in entries if each.kind is Kind.FAULT]

    took, faults = in_virtual_time(play())

    assert seconds <= took < seconds + 60
    assert [each["where"] for each in faults] == ["finish"]
    assert f"{seconds} s after the last turn" in str(faults[0]["error"])


def test_zero_is_for_ever() -> None:
    async def play() -> float:
        session = await started(FramePeer(working_on), **{CEILING: "0"})
        begun = now()
        with pytest.raises(RequestTimeout):
            await session.finish(timeout=100_000)
        took = now() - begun
        await session.cancel()
        return took

    assert in_virtual_time(play()) >= 100_000


def test_each_turn_that_background_work_begins_has_the_whole_time_behind_it() -> None:
    async def play() -> float:
        peer = FramePeer(working_on)
        session = await started(peer, **{CEILING: "10000"})
        begun = now()
        loop = asyncio.get_running_loop()
        opening = {**INIT, "session_id": session.id}
        origin = {"kind": "task-notification"}
        loop.call_later(8, peer.say, opening)
        loop.call_later(30, peer.say, text("it has ended", "msg_2"), result([], origin=origin))
        loop.call_later(38, peer.say, {"type": "system", "subtype": "anything"})
        await session.finish()
        return now() - begun

    assert 40 <= in_virtual_time(play()) < 100


def test_a_query_over_a_stream_of_prompts_ends_too() -> None:
    async def prompts() -> AsyncIterator[str]:
        yield "go"

    async def play() -> float:
        peer = FramePeer(working_on)
        agent = Agent(transport=peer.transport, env={CEILING: "5000"})
        begun = now()
        async for _ in agent.query(prompts()):
            pass
        return now() - begun

    assert 5 <= in_virtual_time(play()) < 100


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("", 600.0), ("x", 600.0), ("-5", 600.0), ("1500", 1.5), (" 7 ", 0.007), ("0", None)],
)
def test_a_value_that_is_no_number_is_none(given: str, seconds: float | None) -> None:
    assert ceiling_of({CEILING: given}) == seconds
