"""Lines that exist because of switches of ours are no messages, unless they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.messages import Assistant, Result, Status, User
from tests._session.peers import Frame, FramePeer, lifecycle, opened, result, text

REQUESTING = {"type": "system", "subtype": "status", "status": "requesting", "uuid": "s"}
COMPACTING = {**REQUESTING, "status": "compacting"}
ANOTHER_MODE = {**REQUESTING, "permissionMode": "plan"}


def answering(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        uuid = frame["uuid"]
        peer.say(lifecycle(uuid, "started"), {**frame, "isReplay": True})
        peer.say(REQUESTING, COMPACTING, ANOTHER_MODE, text("hi"), result([uuid]))


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, [Status, Status, Assistant, Result]),
        ({"include_partial_messages": True}, [Status, Status, Status, Assistant, Result]),
        (
            {"extra_args": {"include-partial-messages": None}},
            [Status, Status, Status, Assistant, Result],
        ),
        (
            {"extra_args": {"replay-user-messages": None}},
            [User, Status, Status, Assistant, Result],
        ),
    ],
)
async def test_messages_are_those_that_were_asked_for(
    options: dict[str, Any], kinds: list[type]
) -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport, **options) as session:
        turn = await session.send("hi")
        await turn
        of_the_turn = [type(each) async for each in turn.messages()]
        lines = [line async for line in turn.raw()]
    of_the_session = [type(each) async for each in session.messages()]

    assert of_the_turn == of_the_session == kinds
    assert sum(b'"requesting"' in line for line in lines) == 2
    assert sum(b'"isReplay"' in line for line in lines) == 1


async def test_a_replayed_prompt_is_the_prompt_that_was_sent() -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport, extra_args={"replay-user-messages": None}) as session:
        turn = await session.send("hi")
        await turn
        first = await anext(turn.messages())

    assert isinstance(first, User)
    assert (first.uuid, first.message.content, first.is_replay) == (turn.uuid, "hi", True)
