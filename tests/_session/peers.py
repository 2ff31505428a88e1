"""What the tests of the session share: sessions on a scripted CLI, and CLIs played by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from steersman.agent import Agent, Session
from steersman.journal import Entry, Lagged
from steersman.ports import Launch, Transport
from steersman.transports.memory import MemoryTransport, Wire

Frame = dict[str, Any]
GREETING = {"claude_code_version": "2.1.325", "current_permission_mode": "default"}
"""The least that a CLI says in its answer to initialize."""
INIT = {"type": "system", "subtype": "init", "permissionMode": "default"}
"""The least with which a CLI begins a turn."""
LIMIT = 5.0


@asynccontextmanager
async def opened(
    transport: Transport, *, limit: float = LIMIT, **options: Any
) -> AsyncIterator[Session]:
    """A session that is closed at the end, and never takes longer than `limit`."""
    async with asyncio.timeout(limit), Agent(transport=transport, **options).session() as session:
        yield session


async def entries_of(session: Session) -> list[Entry]:
    """The whole journal of a session that is closed."""
    found = [entry async for entry in session.journal()]
    assert not any(isinstance(each, Lagged) for each in found)
    return [each for each in found if isinstance(each, Entry)]


class FramePeer:
    """A CLI by hand: gives each frame of the host to a function, which says what it likes."""

    def __init__(
        self,
        on_frame: Callable[[FramePeer, Frame], None] = lambda _peer, _frame: None,
        *,
        greets: bool = True,
    ) -> None:
        self.received: list[Frame] = []
        self.was_killed = False
        self._on_frame = on_frame
        self._greets = greets
        self._wire: Wire | None = None

    @property
    def transport(self) -> MemoryTransport:
        return MemoryTransport(self)

    @property
    def wire(self) -> Wire:
        assert self._wire is not None
        return self._wire

    def say(self, *frames: Frame) -> None:
        self.wire.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def sent(self, kind: str) -> list[Frame]:
        """The frames of one type that the host has sent."""
        return [frame for frame in self.received if frame["type"] == kind]

    def connected(self, launch: Launch, wire: Wire) -> None:
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        for line in data.splitlines():
            frame = json.loads(line)
            self.received.append(frame)
            if self._greets and frame.get("request", {}).get("subtype") == "initialize":
                self.say(answer_to(frame, GREETING))
            self._on_frame(self, frame)

    def input_ended(self) -> None:
        self.wire.exit(0)

    def killed(self) -> None:
        self.was_killed = True


def answer_to(frame: Frame, response: Any = None) -> Frame:
    inside = {"subtype": "success", "request_id": frame["request_id"], "response": response}
    return {"type": "control_response", "response": inside}


def state(name: str) -> Frame:
    return {"type": "system", "subtype": "session_state_changed", "state": name}


def lifecycle(uuid: str, name: str) -> Frame:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": name}


def text(said: str, message_id: str = "msg_1", **fields: Any) -> Frame:
    message = {
        "id": message_id,
        "role": "assistant",
        "content": [{"type": "text", "text": said}],
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **fields}


def result(uuids: list[str], said: str = "", **fields: Any) -> Frame:
    named = {"user_message_uuid": uuids[-1], "user_message_uuids": uuids} if uuids else {}
    usual = {"subtype": "success", "is_error": False, "result": said, "num_turns": 1}
    return {"type": "result", **usual, "terminal_reason": "completed", **named, **fields}
