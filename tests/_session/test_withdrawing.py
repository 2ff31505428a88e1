"""Prompts that are withdrawn before the model sees them, on a CLI played by hand."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import RequestTimeout
from tests._session.peers import Frame, FramePeer, answer_to, lifecycle, opened, result, text


class Queueing:
    """A CLI that starts the first prompt only, and answers a cancellation as it is told to."""

    def __init__(self, *, cancels: bool = True, then: str = "") -> None:
        self.prompts: list[str] = []
        self._cancels = cancels
        self._then = then

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            self.prompts.append(frame["uuid"])
            if len(self.prompts) == 1:
                peer.say(lifecycle(frame["uuid"], "started"))
        if frame.get("request", {}).get("subtype") == "cancel_async_message":
            peer.say(answer_to(frame, {"cancelled": self._cancels}))
            if self._then:
                peer.say(lifecycle(frame["request"]["message_uuid"], self._then))


def cancellations(peer: FramePeer) -> list[str]:
    sent = [frame["request"] for frame in peer.sent("control_request")]
    return [each["message_uuid"] for each in sent if each["subtype"] == "cancel_async_message"]


async def test_a_prompt_that_was_not_sent_is_withdrawn_without_the_cli() -> None:
    peer = FramePeer(Queueing())

    async with opened(peer.transport) as session:
        first = await session.send("one")
        await first.begun()
        second = await session.send("two")

        assert await second.withdraw()
        assert (second.delivery, (await second).outcome) == ("cancelled", "cancelled")
        assert await second.withdraw()

    assert cancellations(peer) == []
    assert len(peer.sent("user")) == 1


async def test_a_prompt_that_has_begun_stays() -> None:
    peer = FramePeer(Queueing())

    async with opened(peer.transport) as session:
        turn = await session.send("one")
        await turn.begun()
        assert not await turn.withdraw()

        peer.say(text("done"), result([turn.uuid], "done"))
        assert (await turn).outcome == "completed"
        assert not await turn.withdraw()

    assert cancellations(peer) == []


@pytest.mark.parametrize(
    ("cancels", "then", "worked"),
    [
        (True, "", True),
        (False, "cancelled", True),
        (False, "started", False),
        (False, "completed", None),
    ],
)
async def test_a_prompt_in_the_queue_of_the_cli_is_withdrawn_if_its_lifecycle_says_so(
    *, cancels: bool, then: str, worked: bool | None
) -> None:
    peer = FramePeer(Queueing(cancels=cancels, then=then))

    async with opened(peer.transport, request_timeout=0.05) as session:
        first = await session.send("one")
        await first.begun()
        second: Any = await session.send("two", when="next")

        if worked is None:
            with pytest.raises(RequestTimeout, match="neither began nor was cancelled"):
                await second.withdraw()
        else:
            assert await second.withdraw() is worked

        assert second.is_settled is (worked is True)
        assert not first.is_settled

    assert cancellations(peer) == [second.uuid]
