"""CLIs played by hand, one after the other, for tests of restarts and closing."""

from __future__ import annotations

from collections.abc import Callable

from steersman.ports import Channel, Launch, Receiver
from tests._session.peers import (
    GREETING,
    Frame,
    FramePeer,
    answer_to,
    lifecycle,
    result,
    state,
    text,
)

MODERN = {**GREETING, "capabilities": ["msg_lifecycle_v1"]}


class Peers:
    """A place where one CLI after the other runs."""

    def __init__(self, *plays: Callable[[FramePeer, Frame], None]) -> None:
        self.peers = [FramePeer(_greeting(play), greets=False) for play in plays]
        self.launches: list[Launch] = []

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        self.launches.append(launch)
        return await self.peers[len(self.launches) - 1].transport.open(launch, receiver)

    def sent(self, number: int) -> list[str]:
        """The uuids of the prompts that a CLI was told."""
        return [frame["uuid"] for frame in self.peers[number].sent("user")]


def _greeting(play: Callable[[FramePeer, Frame], None]) -> Callable[[FramePeer, Frame], None]:
    def greet(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "initialize" and play not in (refuse, silent):
            peer.say(answer_to(frame, MODERN))
        play(peer, frame)

    return greet


def begin_and_die(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        peer.say(state("running"), lifecycle(frame["uuid"], "started"))
        peer.wire.exit(1)


def die(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        peer.wire.exit(1)


def answer(peer: FramePeer, frame: Frame) -> None:
    if frame["type"] == "user":
        peer.say(
            lifecycle(frame["uuid"], "started"),
            text("All."),
            result([frame["uuid"]], "All."),
            lifecycle(frame["uuid"], "completed"),
            state("idle"),
        )


def refuse(peer: FramePeer, frame: Frame) -> None:
    """It does not know the conversation, and says so with a result that names nobody."""
    said = "No conversation found with session ID: x"
    peer.say(result([], is_error=True, subtype="error_during_execution", errors=[said]))
    peer.wire.exit(1)


def silent(_peer: FramePeer, _frame: Frame) -> None:
    """It does not answer the handshake, nor anything else."""


def begin(peer: FramePeer, frame: Frame) -> None:
    """It begins a turn, and never ends it."""
    if frame["type"] == "user":
        peer.say(state("running"), lifecycle(frame["uuid"], "started"))
