"""Writes the messages of a scripted CLI, one line each."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman.testing.scripted.launch import Settings
from steersman.transports.memory import Wire

Frame = JsonDict


def new_id(prefix: str = "") -> str:
    """Return a new id: a UUID, or with a prefix an id like the API's `msg_...` and `req_...`."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}" if prefix else str(uuid.uuid4())


class Output:
    """The CLI's stdout."""

    def __init__(self, wire: Wire, settings: Settings) -> None:
        self.wire = wire
        self.settings = settings
        self.user_frames = 0
        """The number of `user` messages that are not replays."""

    def line(self, value: JsonObject) -> None:
        """Write one object as it is."""
        self.wire.write(_json.dumps(value) + b"\n")

    def frame(self, frame: Frame) -> None:
        """Write a message, with the ids that every message has."""
        frame.setdefault("uuid", new_id())
        frame["session_id"] = self.settings.session_id
        self.line(frame)

    def system(self, subtype: str, **fields: Json) -> None:
        """Write a `system` message."""
        self.frame({"type": "system", "subtype": subtype, **fields})

    def state(self, state: str) -> None:
        """Write the session state, if the host has enabled these messages."""
        if self.settings.reports_state:
            self.system("session_state_changed", state=state)

    def lifecycle(self, command_uuid: str | None, state: str) -> None:
        """Write a `command_lifecycle` message, if the prompt has a uuid."""
        if command_uuid is not None:
            fields = {"command_uuid": command_uuid, "state": state}
            self.frame({"type": "command_lifecycle", **fields})

    def user(self, content: Json, **fields: Json) -> None:
        """Write a `user` message of the CLI: a tool result or a note to the model."""
        self.user_frames += 1
        self._user(content, timestamp=_now(), **fields)

    def replay(self, content: Json, command_uuid: str | None) -> None:
        """Echo a prompt, if the host has enabled replays."""
        if self.settings.replays:
            self._user(content, uuid=command_uuid or new_id(), timestamp=_now(), isReplay=True)

    def note(self, text: str) -> None:
        """Write the output of a local command, outside of any turn."""
        content = f"<local-command-stdout>{text}</local-command-stdout>"
        self._user(content, timestamp=_now(), isReplay=True)

    def partial(self, event: JsonObject, message_id: str, **fields: Json) -> None:
        """Write an event of the API as `stream_event`, if the host has enabled partial messages."""
        if self.settings.shows_partials:
            self.frame(
                {
                    "type": "stream_event",
                    "event": event,
                    "parent_tool_use_id": None,
                    "api_message_id": message_id,
                    **fields,
                }
            )

    def assistant(self, message: JsonObject, **fields: Json) -> None:
        """Write an assistant message with one finished block."""
        frame = {"type": "assistant", "message": message, "parent_tool_use_id": None}
        self.frame({**frame, "timestamp": _now(), "request_id": new_id("req"), **fields})

    def succeed(self, request_id: Json, response: Json = None, **fields: Json) -> None:
        """Answer a control request with success; many responses are empty."""
        inside = {} if response is None else {"response": response}
        self._respond(request_id, {"subtype": "success", **inside}, fields)

    def refuse(self, request_id: Json, error: str, **fields: Json) -> None:
        """Answer a control request with an error."""
        self._respond(request_id, {"subtype": "error", "error": error, **fields}, {})

    def _respond(self, request_id: Json, body: Frame, fields: Frame) -> None:
        identity = {} if request_id is None else {"request_id": request_id}
        response = {**body, **identity, **fields}
        self.line({"type": "control_response", "response": response})

    def _user(self, content: Json, **fields: Json) -> None:
        message = {"role": "user", "content": content}
        self.frame({"type": "user", "message": message, "parent_tool_use_id": None, **fields})


def uuid_fields(uuids: Sequence[str], main: str | None = None) -> Frame:
    """Return the fields that name the prompts of a message."""
    if not uuids:
        return {}
    named = {} if main is None else {"user_message_uuid": main}
    return {**named, "user_message_uuids": list(uuids)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
