"""What a scripted CLI and its host exchange: messages, one line each, control requests, answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman.testing.scripted.launch import Settings
from steersman.transports.memory import Wire

Frame = JsonDict


class HostClosed(Exception):
    """Stdin is closed, so the host cannot answer."""


class HostPreempted(Exception):
    """Another party has decided first, and the request was cancelled."""


class HostRefused(Exception):
    """The host answered with an error."""


@dataclass(frozen=True, slots=True)
class _Open:
    answer: asyncio.Future[Json]
    withdraw: Callable[[], None]
    outlives_turn: bool


class Host:
    """Sends control requests and finds the answer to each."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._open: dict[str, _Open] = {}
        self._withdrawn: set[str] = set()
        self._is_closed = False

    async def ask(
        self,
        request: JsonObject,
        *,
        timeout: float | None = None,
        withdraw: Callable[[], None] | None = None,
        outlives_turn: bool = False,
        until: asyncio.Future[Json] | None = None,
    ) -> Json:
        """Send `request` and return the response.

        An interrupt cancels the request, unless it `outlives_turn`. `withdraw` cancels the request
        if a `control_cancel_request` is not the right way. Raises `HostRefused` and `HostClosed`;
        after cancelling the request also `TimeoutError`, and `HostPreempted` if `until` is done
        first.
        """
        if self._is_closed:
            raise HostClosed
        request_id = new_id()
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        cancel = withdraw or (lambda: self._cancel(request_id))
        self._open[request_id] = _Open(answer, cancel, outlives_turn)
        self._output.line({"type": "control_request", "request_id": request_id, "request": request})
        try:
            async with asyncio.timeout(timeout):
                return await _first(answer, until)
        except (TimeoutError, HostPreempted):
            cancel()
            raise
        finally:
            self._open.pop(request_id, None)

    def notify(self, request: JsonObject) -> None:
        """Send a request without waiting for an answer."""
        if not self._is_closed:
            self._output.line(
                {"type": "control_request", "request_id": new_id(), "request": request}
            )

    def answered(self, response: JsonObject) -> None:
        """Handle a control response; the response to an unknown request is ignored."""
        asked = self._open.get(str(response.get("request_id")))
        if asked is None or asked.answer.done():
            return
        if response.get("subtype") == "error":
            asked.answer.set_exception(HostRefused(str(response.get("error"))))
        else:
            asked.answer.set_result(cast("Json", response.get("response")))

    def has_withdrawn(self, response: JsonObject) -> bool:
        """Return whether `response` answers a request that was cancelled."""
        return str(response.get("request_id")) in self._withdrawn

    def withdraw_all(self) -> None:
        """Cancel the requests of the turn; the tasks that wait for them are not ended here."""
        for request_id, asked in list(self._open.items()):
            if not asked.outlives_turn:
                del self._open[request_id]
                self._withdrawn.add(request_id)
                asked.withdraw()

    def close(self) -> None:
        """Fail all open requests, because the host has closed stdin."""
        self._is_closed = True
        for asked in self._open.values():
            if not asked.answer.done():
                asked.answer.set_exception(HostClosed())

    def _cancel(self, request_id: str) -> None:
        self._output.line({"type": "control_cancel_request", "request_id": request_id})


async def _first(answer: asyncio.Future[Json], other: asyncio.Future[Json] | None) -> Json:
    if other is not None:
        await asyncio.wait([answer, other], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise HostPreempted
    return await answer


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
