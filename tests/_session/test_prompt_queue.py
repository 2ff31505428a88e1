"""The prompt queue: what is written when, and how each prompt settles."""

from __future__ import annotations

from typing import Any

from steersman.agent import Session
from tests._session.peers import (
    Frame,
    FramePeer,
    answer_to,
    entries_of,
    lifecycle,
    opened,
    result,
    state,
    text,
)

__all__ = ["Session", "answer_to", "entries_of"]


def delta(said: str) -> Frame:
    inside = {"type": "content_block_delta", "index": 0}
    event = {**inside, "delta": {"type": "text_delta", "text": said}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


def message_start() -> Frame:
    event = {"type": "message_start", "message": {"id": "msg_1"}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


async def told(turn: Any) -> str:
    return "".join([piece async for piece in turn.text()])


# --- Lines that are lost -----------------------------------------------------------------------


async def test_the_text_of_a_turn_whose_message_was_garbled_is_the_text_that_was_streamed() -> None:
    def garble(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), message_start(), delta("All."))
            peer.wire.write(b'{"type":"assistant","mess\nage":{}}\n')
            peer.say(result([frame["uuid"]], "All."), state("idle"))

    async with opened(FramePeer(garble).transport) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.text, await told(turn)) == ("All.", "All.")


async def test_the_text_of_a_turn_whose_message_was_too_long_is_the_text_that_was_streamed() -> (
    None
):
    def say_too_much(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), message_start(), delta("All."))
            peer.say(text("All." + " " * 5000), result([frame["uuid"]], "All."), state("idle"))

    async with opened(FramePeer(say_too_much).transport, max_buffer_size=4096) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.text, await told(turn)) == ("All.", "All.")


async def test_a_turn_that_had_begun_and_is_cancelled_without_a_result_was_interrupted() -> None:
    """As if its result was too long; `cancelled` is for prompts that the model has not seen."""

    def stop(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say(lifecycle(uuid, "started"), lifecycle(uuid, "cancelled"), state("idle"))

    async with opened(FramePeer(stop).transport) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.outcome, turn.delivery) == ("interrupted", "completed")


async def test_a_turn_that_ends_with_an_api_error_and_without_a_result_has_failed() -> None:
    def fail(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            said = text("API Error: 500 overloaded", is_api_error_message=True)
            peer.say(lifecycle(uuid, "started"), said, lifecycle(uuid, "cancelled"), state("idle"))

    async with opened(FramePeer(fail).transport) as session:
        settled = await (await session.send("go"))

    assert (settled.outcome, settled.text) == ("failed", "")
    assert "500 overloaded" in settled.reason
