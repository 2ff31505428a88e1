"""Prompts with a key, within one session, on a CLI played by hand."""

from __future__ import annotations

from tests._session.peers import Frame, FramePeer, lifecycle, opened, result


def answering(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        peer.say(lifecycle(frame["uuid"], "started"), result([frame["uuid"]], "done"))


async def test_a_key_names_one_turn_however_often_it_is_sent() -> None:
    peer = FramePeer(answering)

    async with opened(peer.transport) as session:
        first = await session.send("one", key="k")
        again = await session.send("one", key="k")
        await first
        later = await session.send("one", key="k")
        other = await session.send("one", key="other")
        plain = await session.send("one")
        await other
        await plain

    assert again is first
    assert later is first
    assert len({first.uuid, other.uuid, plain.uuid}) == 3
    assert len(peer.sent("user")) == 3
