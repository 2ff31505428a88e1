"""A rewind closes one CLI, waits for its end, and starts another one at the checkpoint."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.agent import Session
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import Frame, FramePeer, answer_to, lifecycle, opened, result, text

ID = "11111111-1111-4111-8111-111111111111"


def answering(peer: FramePeer, frame: Frame) -> None:
    """Answer prompts, and every verb."""
    if frame["type"] == "user":
        uuid = frame["uuid"]
        said = text("said", uuid=ID, session_id=ID)
        peer.say(lifecycle(uuid, "started"), said, result([uuid], "said", session_id=ID))
    elif frame["type"] == "control_request" and frame["request"]["subtype"] != "initialize":
        peer.say(answer_to(frame, {"canRewind": True}))


class Watched:
    """A place that records when CLIs are opened and when they exit."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.peers: list[FramePeer] = []

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        self.story.append("opened")
        self.peers.append(FramePeer(answering))
        return await self.peers[-1].transport.open(launch, _Told(receiver, self.story))


class _Told:
    def __init__(self, receiver: Receiver, story: list[str]) -> None:
        self.data_received = receiver.data_received
        self.stderr_received = receiver.stderr_received
        self._exited = receiver.exited
        self._story = story

    def exited(self, status: int) -> None:
        # Reported some rounds later, as by a process.
        asyncio.get_running_loop().call_later(0.01, self._end, status)

    def _end(self, status: int) -> None:
        self._story.append("exited")
        self._exited(status)


async def rewound(session: Session) -> list[str]:
    """Send two prompts, and rewind to the point between them. Return their uuids."""
    first = await session.send("first")
    await first
    checkpoint = session.checkpoint()
    second = await session.send("second")
    await second
    await session.wait_idle(5)
    await session.rewind(checkpoint)
    return [first.uuid, second.uuid]


def files_rewound(place: Watched) -> list[Any]:
    verbs = [each["request"] for peer in place.peers for each in peer.sent("control_request")]
    return [each["user_message_id"] for each in verbs if each["subtype"] == "rewind_files"]


async def test_the_next_cli_starts_when_the_last_one_has_exited() -> None:
    place = Watched()

    async with opened(place, session_id=ID) as session:
        await rewound(session)
        told = list(place.story)

    assert told == ["opened", "exited", "opened"]
    assert files_rewound(place) == []


async def test_with_file_checkpointing_the_files_go_back_to_the_first_prompt_after_it() -> None:
    place = Watched()

    async with opened(place, session_id=ID, enable_file_checkpointing=True) as session:
        _, second = await rewound(session)

    assert files_rewound(place) == [second]


async def test_a_rewind_to_the_last_word_leaves_the_files_alone() -> None:
    place = Watched()

    async with opened(place, session_id=ID, enable_file_checkpointing=True) as session:
        await (await session.send("first"))
        await session.wait_idle(5)
        await session.rewind(session.checkpoint())

    assert files_rewound(place) == []


async def test_a_command_is_sent_as_it_is_and_waits_for_its_turn() -> None:
    cli = ScriptedCLI(Script(say("one"), say("two")))

    async with opened(cli) as session:
        first, command = await session.send("go"), await session.command("/compact now")
        results = [(await turn).outcome for turn in (first, command)]

    assert results == ["completed", "completed"]
    assert [each.last_text for each in cli.asked] == ["go", "/compact now"]
