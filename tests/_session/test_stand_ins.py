"""Peers that tell of no prompt by its uuid: stand-ins of the CLI, and most custom transports."""

from __future__ import annotations

import pytest

from steersman.messages import Assistant, Result
from tests._session.peers import Frame, FramePeer, answer_to, lifecycle, opened, result, text


def answering(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        said = frame["message"]["content"]
        peer.say(text(f"to {said}"), result([], f"to {said}"))


async def test_a_turn_of_a_stand_in_ends_with_its_result() -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        turns = [await session.send(each) for each in ("one", "two", "three")]
        results = [await turn for turn in turns]
        messages = [type(each) async for each in turns[1].messages()]

        assert session.state == "idle"
        assert await session.wait_idle(timeout=1)

    assert [each.outcome for each in results] == ["completed"] * 3
    assert [each.text for each in results] == ["to one", "to two", "to three"]
    assert [each.answer for each in results] == ["to one", "to two", "to three"]
    assert messages == [Assistant, Result]


async def test_prompts_that_share_the_pipe_settle_in_the_order_they_were_sent() -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        turns = [await session.send(each, when="next") for each in ("one", "two")]
        peer.say(text("to one"), result([], "to one"))
        first = await turns[0]
        assert not turns[1].is_settled
        peer.say(result([], "in between", origin={"kind": "task-notification"}))
        peer.say(text("to two", "msg_2"), result([], "to two"))
        second = await turns[1]

    assert (first.text, second.text) == ("to one", "to two")


async def test_an_interrupted_turn_of_a_stand_in_is_interrupted() -> None:
    def stopping(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "interrupt":
            peer.say(answer_to(frame, {}), STOPPED)
        elif frame["type"] == "user":
            peer.say(text("so far"))

    async with opened(FramePeer(stopping).transport) as session:
        turn = await session.send("go")
        await turn.begun()
        await session.interrupt()
        found = await turn

    assert (found.outcome, found.text) == ("interrupted", "so far")


STOPPED = result(
    [], subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming"
)


@pytest.mark.parametrize("sign", ["lifecycle", "capabilities"])
async def test_a_cli_settles_nothing_by_a_result_that_names_no_prompt(sign: str) -> None:
    def speaking(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "initialize":
            capabilities = ["ui_surface_v1"] if sign == "capabilities" else None
            peer.say(answer_to(frame, {"capabilities": capabilities}))
        elif frame["type"] == "user":
            if sign == "lifecycle":
                peer.say(lifecycle(frame["uuid"], "queued"))
            peer.say(text("of another turn"), result([], "of another turn"))
            peer.say(lifecycle(frame["uuid"], "started"), result([frame["uuid"]], "done"))

    async with opened(FramePeer(speaking, greets=False).transport) as session:
        found = await (await session.send("go"))

    assert found.answer == "done"
