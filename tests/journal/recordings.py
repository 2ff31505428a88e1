"""Recorded conversations, held again by a real session, so that its journal can be read back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from steersman.agent import Agent, Session
from steersman.journal import Entry, TurnResult
from tests._session.peers import FramePeer, entries_of
from tests.samples import Frame, dialogue, encoded

LIMIT = 20.0


@dataclass
class Held:
    """What a live session reported about a conversation, and its journal."""

    session: Session
    results: dict[str, TurnResult] = field(default_factory=dict[str, TurnResult])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    entries: list[Entry] = field(default_factory=list[Entry])
    messages: list[Any] = field(default_factory=list[Any])


async def hold(trace: str, **options: Any) -> Held:
    """Let a session send the prompts of `trace` to a CLI that plays the recorded lines."""
    prompts, scenes, status = _scenes_of(trace)
    peer = FramePeer(_Stage(scenes, status).on_frame)
    agent = Agent(transport=peer.transport, **{"close_grace": 0.1, "revive": False, **options})
    async with asyncio.timeout(LIMIT), agent.session() as session:
        held = Held(session)
        turns = [await session.send(prompt) for prompt in prompts]
        for turn in turns:
            held.results[turn.uuid] = await turn
            held.texts[turn.uuid] = "".join([chunk async for chunk in turn.text()])
    held.messages = [message async for message in session.messages()]
    held.entries = await entries_of(session)
    return held


class _Stage:
    """Plays one scene for each prompt; the CLI ends behind the last one."""

    def __init__(self, scenes: list[list[Frame]], status: int) -> None:
        self._scenes = iter(scenes)
        self._left = len(scenes)
        self._status = status
        self._uuids: dict[str, str] = {}

    def on_frame(self, peer: FramePeer, frame: Frame) -> None:
        if frame["type"] != "user":
            return
        scene = next(self._scenes, [])
        self._left -= 1
        for uuid in _uuids_in(scene):
            if uuid not in self._uuids:
                self._uuids[uuid] = frame["uuid"]
                break
        peer.wire.write(b"".join(self._renamed(each) + b"\n" for each in scene))
        if not self._left:
            peer.wire.exit(self._status)

    def _renamed(self, frame: Frame) -> bytes:
        line = encoded(frame)
        for then, now in self._uuids.items():
            line = line.replace(then.encode(), now.encode())
        return line


def _scenes_of(trace: str) -> tuple[list[str], list[list[Frame]], int]:
    """The prompts, the lines of the CLI after each one, and its exit status."""
    prompts: list[str] = []
    scenes: list[list[Frame]] = []
    status = 0
    for side, frame in dialogue(trace):
        if side == "sdk>cli" and frame.get("type") == "user" and "message" in frame:
            prompts.append(json.dumps(frame["message"]["content"])[:200])
            scenes.append([])
        elif side == "cli>sdk" and frame.get("type") != "control_response" and scenes:
            scenes[-1].append(frame)
        elif side == "proc":
            status = frame.get("code", status) or 0
    return prompts, _merged(scenes), status


def _merged(scenes: list[list[Frame]]) -> list[list[Frame]]:
    """A session sends the next prompt once the last one is done with: no scene without a result."""
    merged: list[list[Frame]] = [[]]
    for scene in scenes:
        merged[-1] += scene
        if any(frame["type"] == "result" for frame in scene):
            merged.append([])
    return [scene for scene in merged if scene] or [[]]


def _uuids_in(scene: list[Frame]) -> list[str]:
    found: list[str] = []
    for frame in scene:
        if frame["type"] == "command_lifecycle":
            found.append(frame["command_uuid"])
        elif frame["type"] == "result":
            found += frame.get("user_message_uuids") or [frame.get("user_message_uuid") or ""]
        elif frame.get("isReplay"):
            found.append(frame["uuid"])
    return [uuid for uuid in dict.fromkeys(found) if uuid]
