"""What becomes of prompts when their CLI is lost; the CLIs are played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.agent import Session, Turn
from steersman.errors import CliExited
from steersman.journal import Kind
from steersman.options import Revival
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.faults import rounds
from tests._session.peers import (
    Frame,
    FramePeer,
    entries_of,
    lifecycle,
    opened,
    result,
    state,
    text,
)
from tests._session.plays import Peers, answer, begin_and_die, die, refuse

QUICK = Revival(backoff=0.0)


def resume_turns(first: Callable[[], str]) -> Callable[[FramePeer, Frame], None]:
    """It goes on by itself, and is done before it is told anything."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "initialize":
            uuid = first()
            peer.say(state("running"), text("All."), result([uuid], "All."), state("idle"))
        elif frame["type"] == "user":
            answer(peer, frame)

    return play


async def told(session: Session, kind: Kind) -> list[Any]:
    """The details of the entries of one kind, in a session that is over."""
    return [dict(each.details) for each in await entries_of(session) if each.kind is kind]


# --- Tests -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [die, begin_and_die])
async def test_the_next_cli_is_told_the_prompt_under_its_uuid(
    first: Callable[[FramePeer, Frame], None],
) -> None:
    place = Peers(first, answer)

    async with opened(place, revive=QUICK) as session:
        turn, queued = await session.send("go"), await session.send("and then")
        settled = await turn, await queued

    assert [each.text for each in settled] == ["All.", "All."]
    assert (place.sent(0), place.sent(1)) == ([turn.uuid], [turn.uuid, queued.uuid])
    assert len(await told(session, Kind.SETTLED)) == 2
    assert await told(session, Kind.RESTARTED) == [{"cause": "cli_exited", "attempt": 1}]
    assert session.restarts == 1


async def test_it_goes_on_with_the_conversation_and_waits_for_our_handshake() -> None:
    place = Peers(begin_and_die, answer)

    async with opened(place, revive=QUICK) as session:
        await (await session.send("go"))

    first, second = place.launches
    assert f"--session-id={session.id}" in first.argv
    assert f"--resume={session.id}" in second.argv
    assert "--await-initialize" in second.argv
    assert second.env["CLAUDE_CODE_RESUME_INTERRUPTED_TURN"] == "1"


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


async def test_a_cli_that_continues_a_turn_has_the_tools_from_the_handshake() -> None:
    place = Peers(begin_and_die, answer)

    async with opened(place, revive=QUICK, functions=[double]) as session:
        await (await session.send("go"))

    first, second = (peer.received[0]["request"] for peer in place.peers)
    assert "sdkMcpServerManifests" not in first
    (tool,) = second["sdkMcpServerManifests"]["functions"]["toolsListResult"]["tools"]
    assert tool["name"] == "double"


async def test_a_cli_that_knows_no_conversation_is_followed_by_one_that_begins_it() -> None:
    place = Peers(begin_and_die, refuse, answer)

    async with opened(place, revive=QUICK) as session:
        settled = await (await session.send("go"))

    assert (settled.outcome, settled.text) == ("completed", "All.")
    assert [f"--session-id={session.id}" in each.argv for each in place.launches] == [
        True,
        False,
        True,
    ]
    assert await told(session, Kind.RESTARTED) == [{"cause": "cli_exited", "attempt": 1}]


async def test_a_conversation_that_was_answered_in_and_is_gone_is_not_begun_anew() -> None:
    """Its history is lost, and nobody was told; that must not go by in silence."""

    def answer_once(peer: FramePeer, frame: Frame) -> None:
        answer(peer, frame) if len(peer.sent("user")) < 2 else die(peer, frame)

    place = Peers(answer_once, refuse)

    async with opened(place, revive=QUICK) as session:
        await (await session.send("first"))
        settled = await (await session.send("second"))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, CliExited)
    assert "No conversation found" in str(settled.cause.__cause__)


async def test_a_turn_that_is_done_before_the_prompt_is_resent_is_settled_and_not_resent() -> None:
    turns: list[Turn] = []
    place = Peers(begin_and_die, resume_turns(lambda: turns[0].uuid))

    async with opened(place, revive=QUICK) as session:
        turns.append(await session.send("go"))
        settled = await turns[0]
        pieces = [piece async for piece in turns[0].text()]
        behind = await (await session.send("and then"))

    assert (settled.text, pieces, behind.text) == ("All.", ["All."], "All.")
    assert turns[0].uuid not in place.sent(1)


async def test_what_was_folded_settles_with_the_turn_that_goes_on() -> None:
    def fold_and_die(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"))
        if len(peer.sent("user")) == 2:
            peer.wire.exit(1)

    place = Peers(fold_and_die, answer)

    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        await turn.begun()
        folded = await session.send("this too", when="next")
        settled = await turn, await folded

    assert [each.text for each in settled] == ["All.", "All."]
    assert (turn.delivery, folded.delivery) == ("completed", "folded")
    assert place.sent(1) == [turn.uuid]


async def test_a_prompt_that_steers_still_steers_when_it_is_resent() -> None:
    def begin_first_and_die(peer: FramePeer, frame: Frame) -> None:
        if len(peer.sent("user")) == 2:
            peer.wire.exit(1)
        elif frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"))

    place = Peers(begin_first_and_die, answer)

    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        await turn.begun()
        steering = await session.send("stop that", when="now")
        await asyncio.gather(turn, steering)

    assert [frame.get("priority") for frame in place.peers[1].sent("user")] == [None, "now"]


async def test_a_turn_that_was_told_to_stop_is_neither_resent_nor_taken_up_again() -> None:
    def begin_and_die_when_stopped(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(state("running"), lifecycle(frame["uuid"], "started"))
        if frame.get("request", {}).get("subtype") == "interrupt":
            peer.wire.exit(1)

    place = Peers(begin_and_die_when_stopped, answer)

    async with opened(place, revive=QUICK) as session:
        turn, queued = await session.send("go"), await session.send("and then")
        await turn.begun()
        receipt = await turn.interrupt()
        stopped, done = await turn, await queued

    assert (stopped.outcome, done.outcome) == ("interrupted", "completed")
    assert receipt.still_queued == [queued.uuid]
    assert place.sent(1) == [queued.uuid]
    assert "CLAUDE_CODE_RESUME_INTERRUPTED_TURN" not in place.launches[1].env


@pytest.mark.parametrize("most", [1, 3])
async def test_clis_that_always_die_end_the_session_with_the_first_cause(most: int) -> None:
    place = Peers(*[die] * (most + 1))

    async with opened(place, revive=Revival(most=most, backoff=0.0)) as session:
        turn, queued = await session.send("go"), await session.send("and then")
        settled = await turn, await queued

    assert [each.outcome for each in settled] == ["failed", "failed"]
    assert (session.restarts, session.state) == (most, "failed")
    attempts = [each["attempt"] for each in await told(session, Kind.RESTARTED)]
    assert attempts == list(range(1, most + 1))


async def test_a_turn_between_them_lets_the_count_begin_anew() -> None:
    def answer_and_die(peer: FramePeer, frame: Frame) -> None:
        answer(peer, frame) if len(peer.sent("user")) == 1 else die(peer, frame)

    place = Peers(*[answer_and_die] * 4, answer)

    async with opened(place, revive=Revival(most=1, backoff=0.0)) as session:
        settled = [await (await session.send(f"prompt {n}")) for n in range(5)]

    assert [each.outcome for each in settled] == ["completed"] * 5
    assert session.restarts == 4


async def test_a_session_that_is_closed_while_it_revives_leaves_nothing() -> None:
    def mute(_peer: FramePeer, _frame: Frame) -> None:
        pass

    place = Peers(begin_and_die, mute)

    async with opened(place, revive=Revival(backoff=0.0)) as session:
        turn = await session.send("go")
        await rounds(5)
    settled = await turn

    assert settled.outcome in {"cancelled", "interrupted"}
    assert session.phase.is_over
    assert len(asyncio.all_tasks()) == 1


async def test_without_revival_the_turn_fails_and_nobody_is_started_again() -> None:
    place = Peers(begin_and_die)

    async with opened(place, revive=False) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, CliExited)
    assert len(place.launches) == 1


async def test_a_place_that_breaks_while_it_revives_ends_the_session_and_settles_its_turns() -> (
    None
):
    class Broken(Peers):
        async def open(self, launch: Launch, receiver: Receiver) -> Channel:
            if self.launches:
                raise ZeroDivisionError("the place is broken")
            return await super().open(launch, receiver)

    async with opened(Broken(begin_and_die), revive=QUICK) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, CliExited)
    assert "the place is broken" in str(settled.cause.__cause__)
