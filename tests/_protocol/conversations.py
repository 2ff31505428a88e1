"""Recorded dialogues, held again with a `Connection` in the host's place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from steersman._protocol.connection import Connection
from steersman._protocol.events import Event
from steersman.hooks import HookEvent, PostToolUse, PreToolUse, Stop, UserPromptSubmit
from tests.samples import Direction, Frame, dialogue, encoded

TOKEN = "c0ffee"
EVENTS: dict[str, type[HookEvent]] = {
    "PostToolUse": PostToolUse,
    "PreToolUse": PreToolUse,
    "Stop": Stop,
    "UserPromptSubmit": UserPromptSubmit,
}

Dialogue = list[tuple[Direction, Frame]]


def hooks_of(said: Dialogue) -> dict[str, type[HookEvent]]:
    """The hooks that the host of a dialogue registered, as far as we have their classes."""
    registered: dict[str, type[HookEvent]] = {}
    for direction, frame in said:
        request = frame.get("request") if direction == "sdk>cli" else None
        hooks = request.get("hooks") if isinstance(request, dict) else None
        for name, matchers in (hooks if isinstance(hooks, dict) else {}).items():
            for matcher in matchers if name in EVENTS else ():
                registered |= dict.fromkeys(matcher.get("hookCallbackIds", ()), EVENTS[name])
    return registered


@dataclass
class Rehearsal:
    """Takes the host's part: sends its prompts and requests, and hears the CLI's lines."""

    connection: Connection
    ids: dict[str, str] = field(default_factory=dict[str, str])
    """The ids of the host's requests then, and those they have now."""

    def say(self, frame: Frame) -> None:
        """Send what the host of the recording sent."""
        match frame:
            case {"type": "user", "uuid": str(uuid), "message": {"content": content}}:
                self.connection.prompt(uuid, content)
            case {
                "type": "control_request",
                "request_id": str(old),
                "request": {"subtype": str(subtype)},
            }:
                self.ids[old], _line = self.connection.control(subtype, {}, 0.0, 60.0)
            case _:
                pass

    def renamed(self, frame: Frame) -> Frame:
        """What the CLI said, with the ids that the host's requests have now."""
        match frame:
            case {"type": "control_response", "response": {"request_id": str(old)}}:
                response = {**frame["response"], "request_id": self.ids.get(old, old)}
                return {**frame, "response": response}
            case _:
                return frame


def open_connection(said: Dialogue, **settings: Any) -> tuple[Connection, bytes]:
    """A connection that has said all that the host said, and all that the CLI then says."""
    rehearsal = Rehearsal(Connection(TOKEN, hooks_of(said), **settings))
    for direction, frame in said:
        if direction == "sdk>cli":
            rehearsal.say(frame)
    lines = [encoded(rehearsal.renamed(frame)) for side, frame in said if side == "cli>sdk"]
    return rehearsal.connection, b"".join(line + b"\n" for line in lines)


def heard(said: Dialogue, *, is_modern: bool = False) -> list[tuple[Frame, list[Event]]]:
    """What each line of the CLI's gives, with the host speaking in its own time."""
    rehearsal = Rehearsal(Connection(TOKEN, hooks_of(said)))
    if is_modern:
        rehearsal.connection.reports_lifecycle()
    found: list[tuple[Frame, list[Event]]] = []
    for direction, frame in said:
        if direction == "sdk>cli":
            rehearsal.say(frame)
        elif direction == "cli>sdk":
            line = encoded(rehearsal.renamed(frame)) + b"\n"
            found.append((frame, rehearsal.connection.receive(line)))
    return found


def with_uuids(trace: str) -> Dialogue:
    """A recording in which every prompt has a uuid: those without one get `prompt-1` and so on."""
    numbered = 0
    said = dialogue(trace)
    for direction, frame in said:
        if direction == "sdk>cli" and frame.get("type") == "user" and "uuid" not in frame:
            numbered += 1
            frame["uuid"] = f"prompt-{numbered}"
    return said


def as_older_cli(trace: str) -> Dialogue:
    """A recording as an older CLI would have it: no lifecycles, no uuids on results, but replays.

    Where a recording has no replay, it gets one where the CLI began with the prompt: in the place
    of `started`, or else behind the `system/init` that opens the prompt's turn.
    """
    said = with_uuids(trace)
    sent = [
        frame["uuid"] for side, frame in said if side == "sdk>cli" and frame.get("type") == "user"
    ]
    replayed = {frame.get("uuid") for side, frame in said if frame.get("isReplay")}
    openings = iter(_prompts_by_opening(said, [uuid for uuid in sent if uuid.startswith("prompt")]))
    older: Dialogue = []
    for direction, frame in said:
        match frame:
            case {"type": "command_lifecycle", "command_uuid": uuid, "state": "started"}:
                if uuid not in replayed:
                    older.append(("cli>sdk", _replay(uuid)))
            case {"type": "command_lifecycle"}:
                pass
            case {"type": "system", "subtype": "init"}:
                older.append((direction, _nameless(frame)))
                older += [("cli>sdk", _replay(uuid)) for uuid in next(openings, [])]
            case _:
                older.append((direction, _nameless(frame) if direction == "cli>sdk" else frame))
    return older


def _prompts_by_opening(said: Dialogue, unnamed: list[str]) -> list[list[str]]:
    """For each `system/init`, the prompt without a uuid of its own that it opens a turn for."""
    waiting = iter(unnamed)
    results = [frame for side, frame in said if side == "cli>sdk" and frame.get("type") == "result"]
    return [
        []
        if "origin" in result or "user_message_uuids" in result
        else [*_some(next(waiting, None))]
        for result in results
    ]


def _some(uuid: str | None) -> list[str]:
    return [] if uuid is None else [uuid]


def _nameless(frame: Frame) -> Frame:
    return {key: value for key, value in frame.items() if not key.startswith("user_message_uuid")}


def _replay(uuid: str) -> Frame:
    message = json.loads('{"role":"user","content":"as it was sent"}')
    return {"type": "user", "message": message, "uuid": uuid, "isReplay": True}
