"""The faults of the simulation on the stock CLI, which must leave no process behind."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from steersman.errors import CliExited, StartupExited
from steersman.journal import Kind
from steersman.messages import Result
from steersman.testing.faults import (
    HARMLESS,
    Drop,
    FaultPlan,
    FaultyTransport,
    Kill,
    Noise,
    SlowReader,
    Suspend,
)
from steersman.testing.faults.kinds import Fault
from steersman.testing.script import say, stall
from steersman.transports.subprocess import SubprocessTransport
from tests.live.staging import LIMIT, MakeScripted, collect, entries_of

pytestmark = pytest.mark.live

ANSWER = "once upon a time there was a pipe"


def faulty(*faults: Fault) -> FaultyTransport:
    return FaultyTransport(SubprocessTransport(), FaultPlan(0, *faults))


async def test_killed_before_its_first_word_it_has_not_started(scripted: MakeScripted) -> None:
    agent, _model = scripted()

    async with asyncio.timeout(LIMIT):
        with pytest.raises(StartupExited) as exited:
            await agent.session(revive=False, transport=faulty(Kill(1))).start()

    assert exited.value.evidence is not None
    assert exited.value.evidence.status == -signal.SIGKILL


@pytest.mark.parametrize("at", [4, '"text_delta"', '"type":"result"'])
async def test_killed_in_a_turn_the_turn_has_failed_and_keeps_its_text(
    scripted: MakeScripted, at: Any
) -> None:
    agent, _model = scripted(say(ANSWER, chunks=4))

    async with (
        asyncio.timeout(LIMIT),
        agent.session(revive=False, transport=faulty(Kill(at))) as session,
    ):
        turn, queued = await session.send("a story"), await session.send("another")
        settled = [await turn, await queued]
        told = "".join(await collect(turn.text()))

    assert [each.outcome for each in settled] == ["failed", "failed"]
    assert isinstance(settled[0].cause, CliExited)
    assert ANSWER.startswith(settled[0].text)
    assert told == settled[0].text
    assert session.state == "failed"


async def test_stopped_for_ever_it_can_still_be_closed(scripted: MakeScripted) -> None:
    agent, _model = scripted(say(ANSWER, chunks=4), close_grace=0.2)
    transport = faulty(Suspend('"text_delta"'))

    async with asyncio.timeout(LIMIT), agent.session(revive=False, transport=transport) as session:
        turn = await session.send("a story")
        await turn.begun()
        async with asyncio.timeout(5):
            await session.aclose()
        settled = await turn

    assert settled.outcome in ("cancelled", "interrupted")
    assert session.state == "completed"


async def test_stopped_for_a_while_it_goes_on_as_if_nothing_had_been(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say(ANSWER, chunks=4))
    transport = faulty(Suspend('"text_delta"', seconds=0.3))

    async with asyncio.timeout(LIMIT), agent.session(revive=False, transport=transport) as session:
        settled = await (await session.send("a story"))

    assert (settled.outcome, settled.text) == ("completed", ANSWER)
    assert len(transport.happened) == 1


async def test_noise_on_stdout_is_kept_and_changes_nothing(scripted: MakeScripted) -> None:
    agent, _model = scripted(say(ANSWER, chunks=4))
    noise = (
        Noise(1, b"Loading..."),
        Noise('"text_delta"', b"{"),
        Noise('"type":"result"', b"null"),
    )

    async with (
        asyncio.timeout(LIMIT),
        agent.session(revive=False, transport=faulty(*noise)) as session,
    ):
        settled = await (await session.send("a story"))
        heard = [each.line for each in await entries_of(session) if each.kind is Kind.NOISE]

    assert (settled.outcome, settled.text) == ("completed", ANSWER)
    assert heard == [b"Loading...", b"{", b"null"]


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_what_is_harmless_changes_nothing(scripted: MakeScripted, seed: int) -> None:
    agent, _model = scripted(say(ANSWER, chunks=4), say("the end"))
    plan = FaultPlan(seed, among=HARMLESS, lines=40, most=20)
    transport = FaultyTransport(SubprocessTransport(), plan)

    async with asyncio.timeout(LIMIT), agent.session(revive=False, transport=transport) as session:
        settled = [await (await session.send(prompt)) for prompt in ("a story", "go on")]

    assert [each.text for each in settled] == [ANSWER, "the end"], plan
    assert transport.happened


async def test_a_result_that_is_lost_is_made_up_for_when_the_cli_is_idle(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say(ANSWER, chunks=4), say("the end"))
    transport = faulty(Drop('"type":"result"'))

    async with asyncio.timeout(LIMIT), agent.session(revive=False, transport=transport) as session:
        settled = [await (await session.send(prompt)) for prompt in ("a story", "go on")]

    assert [each.outcome for each in settled] == ["completed", "completed"]
    assert [each.text for each in settled] == [ANSWER, "the end"]
    assert settled[0].result is None


async def test_a_reader_that_dawdles_holds_up_nobody_and_misses_nothing(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say(ANSWER, chunks=20), say("half") + stall(0.1) + say(" and half"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        slow = asyncio.ensure_future(collect(SlowReader(session.messages(), rounds=200)))
        for prompt in ("a story", "go on"):
            await (await session.send(prompt))
        was_behind = not slow.done()
    late = await collect(session.messages())

    assert was_behind
    assert await slow == late
    assert sum(isinstance(each, Result) for each in late) == 2
