"""The control protocol, both directions, without I/O.

bytes    --receive()-->  events
verbs    --call()----->  bytes        answers come back as `Answered`
replies  --answer()--->  bytes
prompts  --prompt()--->  bytes        their end comes back as `TurnSettled`
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar, cast, final

import msgspec
from msgspec.structs import force_setattr

from steersman import _json
from steersman._protocol.events import (
    Answered,
    AssistantArrived,
    DialogAsked,
    ElicitationAsked,
    EntriesMirrored,
    Event,
    HookAsked,
    LineDropped,
    MessageArrived,
    ModeDiffers,
    NoiseReceived,
    PermissionAsked,
    StateReported,
    StreamEventsArrived,
    ToolCalled,
    Unanswerable,
    Withdrawn,
)
from steersman._protocol.framing import DEFAULT_LIMIT, LineFramer, Oversize
from steersman._protocol.permission_mode import ModeCheck, modes_in
from steersman._protocol.routing import (
    Response,
    RoutingFields,
    StreamEventFields,
    callback_of,
    plain_value,
    read_head,
    read_routing,
    read_stream_event,
)
from steersman._protocol.turns import TurnTracker
from steersman._struct import (
    CONVERT_ERRORS,
    DECODE_ERRORS,
    SOURCE,
    WireStruct,
    decoder_of,
    read_leniently,
    set_source,
)
from steersman.control.verbs import Answer, Verb
from steersman.errors import RequestLost, RequestRefused, RequestTimeout
from steersman.hooks.events import HookEvent
from steersman.journal import Kind
from steersman.messages.parsing import decode_stream_event, read_assistant
from steersman.messages.turns import StreamEvent
from steersman.permissions import CanUseTool, Elicitation, UserDialog

WireT = TypeVar("WireT", bound=WireStruct)

# Most lines need one of these, and looking up a member of an enum is slow on Python 3.11.
CONTROL, MESSAGE, PARTIAL = Kind.CONTROL, Kind.MESSAGE, Kind.PARTIAL

READ_IN_FULL = StreamEventFields(abandoned_blocks=True)
"""Replaces the fields of a `stream_event` line that must be read in full."""

REMEMBERED = 64
"""Number of answered requests that are remembered, in case a line arrives twice."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A control request of ours that the CLI has not answered."""

    operation: str
    answer: type[Answer]
    since: float
    timeout: float
    mode: str = ""
    """The permission mode that the request sets, if it does."""

    @property
    def deadline(self) -> float:
        """When the CLI must have answered."""
        return self.since + self.timeout


@final
class _HookCallback(msgspec.Struct, frozen=True, tag_field="subtype", tag="hook_callback"):
    callback_id: str
    input: msgspec.Raw
    tool_use_id: Any = None


@final
class _McpMessage(msgspec.Struct, frozen=True, tag_field="subtype", tag="mcp_message"):
    server_name: str
    message: dict[str, Any]


class _Request(msgspec.Struct, frozen=True, tag_field="type", tag="control_request"):
    """The usual control requests, decoded in one step."""

    request_id: str
    request: CanUseTool | _HookCallback | _McpMessage
    session_id: str | None = None


_decode_request = msgspec.json.Decoder(_Request).decode

BEGINNING = 20
"""Bytes that identify the usual lines: the CLI writes the type first, without blanks."""
STREAM_EVENT = b'{"type":"stream_event"'[:BEGINNING]
ASSISTANT = b'{"type":"assistant",'[:BEGINNING]
REQUEST = b'{"type":"control_request"'[:BEGINNING]
MIRROR = b'{"type":"transcript_mirror"'[:BEGINNING]
SET_MODE = "set_permission_mode"
SETS_MODE = b'"setMode"'
"""A part of each answer that changes the permission mode, and of few others."""
REQUEST_PATH, INPUT_PATH = ("request",), ("request", "input")
"""Paths on a control request's line: the request, and the input of a hook."""


class Connection:
    """The protocol with one CLI process."""

    def __init__(
        self,
        token: str,
        hooks: Mapping[str, type[HookEvent]] | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        mirrors: bool = False,
        partials: bool = True,
        mode: ModeCheck | None = None,
    ) -> None:
        self._mode = mode
        """Compares the permission mode that the CLI reports; None if it was given none."""
        self._is_typed = partials
        """Whether the caller iterates over partial messages.

        If so, they are decoded here, and a report of each API request is a message too.
        """
        self._turns = TurnTracker()
        self.session_id = ""
        """The session id that the CLI reported last; empty before."""
        self._token = token
        # Only a session with a store pays for the look at what may be a report for it.
        self._read_other = self._read_or_mirror if mirrors else self._read
        self._hooks = hooks or {}
        self._framer = LineFramer(limit)
        self._numbers = itertools.count(1)
        self._pending: dict[str, _Pending] = {}
        self._asked: dict[str, tuple[str, Any] | None] = {}
        self._answered: dict[str, None] = {}
        self._by_type: dict[str, Callable[[RoutingFields, bytes], list[Event]]] = {
            "stream_event": self._on_partial,
            "user": self._on_user,
            "system": self._on_system,
            "assistant": self._on_assistant,
            "result": self._on_result,
            "command_lifecycle": self._on_lifecycle,
            "control_response": self._on_answer,
            "control_request": self._on_request,
            "control_cancel_request": self._on_cancel,
        }
        if mirrors:
            self._by_type["transcript_mirror"] = self._on_mirrored

    # From the CLI

    def receive(self, chunk: bytes) -> list[Event]:
        """Return an event for each line that `chunk` completes; `b""` is the end of the output."""
        runs = (AssistantArrived, StreamEventsArrived)
        return [
            each
            for event in self.receive_batched(chunk)
            for each in (event.each() if isinstance(event, runs) else (event,))
        ]

    def receive_batched(self, chunk: bytes) -> list[Event]:  # noqa: C901 - calls cost more here
        """Return the events of `receive`, but consecutive `stream_event` lines as one event."""
        events: list[Event] = []
        run: StreamEventsArrived | None = None
        parent: str | None = None
        # Decoded once, for routing and for the reader.
        read_partial = decode_stream_event if self._is_typed else read_stream_event
        for line in self._framer.feed(chunk) if chunk else self._framer.finish():
            if type(line) is Oversize:
                run = None
                events += self._drop(line)
                continue
            # A slice takes half the time of `startswith`.
            beginning = line[:BEGINNING]
            if beginning == STREAM_EVENT:
                try:
                    found = read_partial(line)
                except DECODE_ERRORS:
                    found = READ_IN_FULL
                if found.abandoned_blocks is None:
                    if run is None or found.parent_tool_use_id != parent:
                        parent = found.parent_tool_use_id
                        events += self._spoken(parent) if self._turns.is_nameless else ()
                        turns = self._turns
                        owners = turns.current if parent is None else turns.owners(parent)
                        run = StreamEventsArrived([], owners, [] if self._is_typed else None)
                        events.append(run)
                    run.lines.append(line)
                    if run.messages is not None:
                        run.messages.append(cast("StreamEvent", found))
                    if found.session_id:
                        self.session_id = found.session_id
                    continue
            run = None
            if beginning == ASSISTANT:
                events += self._read_assistant(line)
            elif beginning == REQUEST:
                events += self._read_request(line)
            else:
                events += self._read_other(line)
        return events

    def _drop(self, line: Oversize) -> Iterable[Event]:
        """Return the events of a line that is too long: the CLI waits if it is a request."""
        found = read_head(line.head)
        if found is None or found.type != "control_request" or found.request_id is None:
            return (LineDropped(line),)
        if found.request_id in self._asked or found.request_id in self._answered:
            return (LineDropped(line),)
        self._asked[found.request_id] = None
        reason = f"the request has {line.size} bytes, which is more than max_buffer_size"
        return (
            LineDropped(line),
            Unanswerable(found.request_id, reason, callback_of(line.head)),
        )

    def _read_assistant(self, line: bytes) -> Iterable[Event]:
        try:
            message = read_assistant(line)
        except DECODE_ERRORS:
            return self._read(line)
        if message.session_id:
            self.session_id = message.session_id
        turns, parent = self._turns, message.parent_tool_use_id
        if turns.is_nameless and parent is None:
            return (*turns.spoken(), AssistantArrived(line, message, turns.current))
        return (AssistantArrived(line, message, turns.owners(parent)),)

    def _read_request(self, line: bytes) -> Iterable[Event]:
        try:
            found = _decode_request(line)
        except DECODE_ERRORS:
            return self._read(line)
        if found.session_id:
            self.session_id = found.session_id
        request_id, request = found.request_id, found.request
        if request_id in self._asked or request_id in self._answered:
            return (MessageArrived(line, CONTROL, ()),)
        self._asked[request_id] = None
        if type(request) is _HookCallback:
            return (MessageArrived(line, CONTROL, ()), self._hook(request_id, request, line))
        if type(request) is _McpMessage:
            return (MessageArrived(line, CONTROL, ()), *self._tool(request_id, request))
        force_setattr(request, SOURCE, (line, REQUEST_PATH))
        return (MessageArrived(line, CONTROL, ()), PermissionAsked(request_id, request))

    def _read_or_mirror(self, line: bytes) -> Iterable[Event]:
        # For the store only: in the journal, a conversation would be there twice.
        return (EntriesMirrored(line),) if line[:BEGINNING] == MIRROR else self._read(line)

    def _read(self, line: bytes) -> Iterable[Event]:
        found = read_routing(line)
        if found is None:
            return (NoiseReceived(line),)
        if found.session_id:
            self.session_id = found.session_id
        return self._by_type.get(found.type, self._on_message)(found, line)

    def _on_partial(self, found: RoutingFields, line: bytes) -> list[Event]:
        name = "" if found.abandoned_blocks is None else "abandoned"
        started = self._spoken(found.parent_tool_use_id)
        turns = self._turns.owners(found.parent_tool_use_id)
        return [*started, MessageArrived(line, PARTIAL, turns, name)]

    def _spoken(self, parent: str | None) -> Iterable[Event]:
        """Return the events that follow from a message of a peer that names no prompt."""
        return self._turns.spoken() if self._turns.is_nameless and parent is None else ()

    def _on_message(self, found: RoutingFields, line: bytes) -> list[Event]:
        name = found.subtype or "" if found.type == "system" else found.type
        turns = self._turns.owners(found.parent_tool_use_id)
        return [MessageArrived(line, MESSAGE, turns, name)]

    def _on_assistant(self, found: RoutingFields, line: bytes) -> list[Event]:
        return [*self._spoken(found.parent_tool_use_id), *self._on_message(found, line)]

    def _on_mirrored(self, _: RoutingFields, line: bytes) -> list[Event]:
        return [EntriesMirrored(line)]

    def _on_user(self, found: RoutingFields, line: bytes) -> list[Event]:
        if not found.is_replay:
            return [*self._spoken(found.parent_tool_use_id), *self._on_message(found, line)]
        started = self._turns.replayed(found.uuid or "")
        return [MessageArrived(line, Kind.BOOKKEEPING, self._turns.current), *started]

    def _on_system(self, found: RoutingFields, line: bytes) -> list[Event]:
        if found.subtype == "session_state_changed":
            settled = self._turns.idle() if found.state == "idle" else []
            arrived = MessageArrived(line, Kind.BOOKKEEPING, ())
            return [arrived, *settled, StateReported(found.state or "")]
        if found.subtype == "status" and not self._is_typed and _is_request(line):
            turns = self._turns.owners(found.parent_tool_use_id)
            return [MessageArrived(line, Kind.BOOKKEEPING, turns, "status")]
        if found.subtype == "init":
            opened = (*self._turns.opened(), *self._on_message(found, line))
            # First, so that the session ends before the turn is seen.
            return [*self._compare_mode(found), *opened]
        if found.subtype == "task_started" and found.tool_use_id:
            self._turns.task_started(found.tool_use_id)
        return [*self._compare_mode(found), *self._on_message(found, line)]

    def _compare_mode(self, found: RoutingFields) -> Iterable[Event]:
        check, reported = self._mode, found.permission_mode
        if check is None:
            return ()
        if found.subtype == "init":
            is_right = check.starts_in(reported or "")
        else:
            is_right = found.subtype != "status" or not reported or check.changes_to(reported)
        return () if is_right else (ModeDiffers(check.given, reported or ""),)

    def _on_result(self, found: RoutingFields, line: bytes) -> list[Event]:
        is_named = found.user_message_uuids or found.user_message_uuid or found.origin is not None
        if self._turns.is_refusal(found):
            # The end of a start that has failed, and of no turn.
            return [MessageArrived(line, Kind.BOOKKEEPING, ())]
        started = () if is_named else self._spoken(None)
        arrived = MessageArrived(line, MESSAGE, self._turns.current, found.type)
        return [*started, arrived, *self._turns.result(found, line)]

    def _on_lifecycle(self, found: RoutingFields, line: bytes) -> list[Event]:
        changed = self._turns.lifecycle(found.command_uuid or "", found.state or "")
        return [MessageArrived(line, Kind.BOOKKEEPING, ()), *changed]

    def _on_answer(self, found: RoutingFields, line: bytes) -> list[Event]:
        arrived = MessageArrived(line, CONTROL, ())
        try:
            response = msgspec.json.decode(found.response, type=Response)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            response = _read_response(plain_value(found.response))
        pending = self._pending.pop(response.request_id, None)
        if pending is None:
            return [arrived]
        answer = _answer_of(pending, response)
        if pending.mode and self._mode is not None:
            is_refused = isinstance(answer, RequestRefused)
            (self._mode.was_refused if is_refused else self._mode.is_set)(pending.mode)
        return [arrived, Answered(response.request_id, answer)]

    def _on_request(self, found: RoutingFields, line: bytes) -> list[Event]:
        arrived = MessageArrived(line, CONTROL, ())
        request_id = found.request_id
        if request_id is None or request_id in self._asked or request_id in self._answered:
            # No id to answer to, or a request that arrived before. The line is journalled only.
            return [arrived]
        self._asked[request_id] = None
        request = plain_value(found.request)
        if not request:
            hook = callback_of(line)
            return [arrived, Unanswerable(request_id, "the request cannot be read", hook)]
        return [arrived, *self._ask(request_id, request)]

    def _ask(self, request_id: str, request: Any) -> list[Event]:
        subtype = request.get("subtype") if _json.is_object(request) else None
        event: Event = Unanswerable(request_id, f"unsupported request {subtype!r}")
        try:
            match subtype:
                case "can_use_tool":
                    event = PermissionAsked(request_id, _typed(CanUseTool, request))
                case "elicitation":
                    event = ElicitationAsked(request_id, _typed(Elicitation, request))
                case "request_user_dialog":
                    event = DialogAsked(request_id, _typed(UserDialog, request))
                case "hook_callback":
                    asked = {**request, "input": msgspec.Raw(_json.dumps(request.get("input")))}
                    event = self._hook(request_id, msgspec.convert(asked, _HookCallback))
                case "mcp_message":
                    return self._tool(request_id, msgspec.convert(request, _McpMessage))
                case _:
                    pass
        except CONVERT_ERRORS as error:
            hook = request.get("callback_id") if subtype == "hook_callback" else None
            event = Unanswerable(
                request_id,
                f"{subtype} cannot be read: {type(error).__name__}",
                hook if isinstance(hook, str) else "",
            )
        return [event]

    def _hook(self, request_id: str, asked: _HookCallback, line: bytes | None = None) -> Event:
        event = self._hooks.get(asked.callback_id)
        if event is None:
            return Unanswerable(request_id, f"no hook is registered as {asked.callback_id!r}")
        try:
            given = decoder_of(event).decode(asked.input)
        except DECODE_ERRORS:
            found = plain_value(asked.input)
            if not _is_complete(found):
                reason = "hook_callback cannot be read: ValidationError"
                return Unanswerable(request_id, reason, asked.callback_id)
            given, line = set_source(read_leniently(event, found), found), None
        else:
            if line is None:
                set_source(given, plain_value(asked.input))
            else:
                force_setattr(given, SOURCE, (line, INPUT_PATH))
        about = asked.tool_use_id if isinstance(asked.tool_use_id, str) else ""
        return HookAsked(request_id, asked.callback_id, given, about)

    def _tool(self, request_id: str, asked: _McpMessage) -> list[Event]:
        called: list[Event] = [ToolCalled(request_id, asked.server_name, asked.message)]
        if "id" in asked.message:
            self._asked[request_id] = (asked.server_name, asked.message["id"])
        elif asked.message.get("method") == "notifications/cancelled":
            params = asked.message.get("params")
            number = params.get("requestId") if _json.is_object(params) else None
            call = (asked.server_name, number)
            called += [Withdrawn(each) for each, known in self._asked.items() if known == call]
        return called

    def _on_cancel(self, found: RoutingFields, line: bytes) -> list[Event]:
        arrived = MessageArrived(line, CONTROL, ())
        if found.request_id not in self._asked:
            return [arrived]
        del self._asked[found.request_id]
        return [arrived, Withdrawn(found.request_id)]

    # To the CLI

    @property
    def open_requests(self) -> frozenset[str]:
        """The ids of the CLI's requests that we have not answered."""
        return frozenset(self._asked)

    @property
    def pending(self) -> frozenset[str]:
        """The ids of our requests that the CLI has not answered."""
        return frozenset(self._pending)

    def reports_lifecycle(self) -> None:
        """Record that the CLI has listed what it supports: it reports on prompts by their uuids."""
        self._turns.is_nameless = False

    def expect(self, uuid: str) -> None:
        """Expect lines about a prompt that the CLI continues by itself."""
        self._turns.expect(uuid)

    def resume(self, uuids: Iterable[str]) -> None:
        """Expect the CLI to continue the turn of these prompts, in which another CLI exited."""
        self._turns.resume(uuids)

    def alias(self, other: str, uuid: str) -> None:
        """Count what the CLI reports about `other` as about the prompt `uuid`."""
        self._turns.alias(other, uuid)

    def adopt(self, uuid: str) -> None:
        """Count the turn that the CLI has begun by itself as that of the prompt `uuid`."""
        self._turns.adopt(uuid)

    def continue_as(self, uuid: str, other: str) -> None:
        """Expect the turn of the prompt `uuid` to continue under the uuid `other`."""
        self._turns.continue_as(uuid, other)

    def cancelled(self, uuid: str) -> list[Event]:
        """Return the events that follow from the CLI having dropped a queued prompt."""
        return [*self._turns.lifecycle(uuid, "cancelled")]

    def prompt(self, uuid: str, content: Any, **fields: Any) -> bytes:
        """Return the line that sends a prompt under `uuid`."""
        self._turns.expect(uuid)
        message = {"role": "user", "content": content}
        return _json.dump_line(
            {
                "type": "user",
                "message": message,
                "parent_tool_use_id": None,
                "uuid": uuid,
                **fields,
            }
        )

    def call(
        self, verb: Verb[Any], now: float, timeout: float, answer: type[Answer] | None = None
    ) -> tuple[str, bytes]:
        """Return the id to wait for and the line to send; `now` is on the caller's clock.

        The answer is read as an `answer`, or else as that of the verb.
        """
        given = verb.operation, answer or verb.ANSWER, now, timeout
        return self._request(verb, _Pending(*given, _mode_of(verb.operation, verb)))

    def control(
        self, subtype: str, fields: Mapping[str, Any], now: float, timeout: float
    ) -> tuple[str, bytes]:
        """Return id and line of a control request that has no class here."""
        request = {**fields, "subtype": subtype}
        given = subtype, Answer, now, timeout
        return self._request(request, _Pending(*given, _mode_of(subtype, request)))

    def _request(self, request: Any, pending: _Pending) -> tuple[str, bytes]:
        request_id = f"req_{next(self._numbers)}_{self._token}"
        if pending.mode and self._mode is not None:
            self._mode.asks_for(pending.mode)
        self._pending[request_id] = pending
        line = _json.dump_line(
            {"type": "control_request", "request_id": request_id, "request": request}
        )
        return request_id, line

    def cancel(self, request_id: str) -> bytes:
        """Forget a request of ours; return the line that cancels it, or nothing if it has ended."""
        if self._pending.pop(request_id, None) is None:
            return b""
        return _json.dump_line({"type": "control_cancel_request", "request_id": request_id})

    def next_deadline(self) -> float | None:
        """The earliest deadline of our requests, or None."""
        return min((each.deadline for each in self._pending.values()), default=None)

    def expire(self, now: float) -> list[tuple[Answered, bytes]]:
        """Return our requests whose deadline has passed, each with the line that cancels it."""
        late = [
            (each, self._pending[each])
            for each in self._pending
            if self._pending[each].deadline <= now
        ]
        return [
            (
                Answered(each, RequestTimeout(pending.operation, "no answer", pending.timeout)),
                self.cancel(each),
            )
            for each, pending in late
        ]

    def lose(self) -> list[Answered]:
        """Return an error for each request of ours, because the CLI has exited."""
        lost, self._pending = self._pending, {}
        return [
            Answered(each, RequestLost(pending.operation, "the CLI went away"))
            for each, pending in lost.items()
        ]

    def answer(self, request_id: str, response: Any) -> bytes:
        """Return the line that answers a request; nothing if the CLI no longer waits for it."""
        return self._respond(
            request_id, {"subtype": "success", "response": response, "request_id": request_id}
        )

    def refuse(self, request_id: str, reason: str) -> bytes:
        """Return the line that answers a request with an error; nothing if it was withdrawn."""
        return self._respond(
            request_id, {"subtype": "error", "error": reason, "request_id": request_id}
        )

    def _respond(self, request_id: str, body: dict[str, Any]) -> bytes:
        if request_id not in self._asked:
            return b""
        line = _json.dump_line({"type": "control_response", "response": body})
        if self._mode is not None and SETS_MODE in line:
            for mode in modes_in(_json.loads(line)["response"].get("response")):
                self._mode.asks_for(mode)
        del self._asked[request_id]
        self._answered[request_id] = None
        if len(self._answered) > REMEMBERED:
            del self._answered[next(iter(self._answered))]
        return line


def _mode_of(operation: str, request: Any) -> str:
    """Return the permission mode that a control request sets; empty if it sets none."""
    if operation != SET_MODE:
        return ""
    mode = request.get("mode") if _json.is_mapping(request) else getattr(request, "mode", "")
    return mode if isinstance(mode, str) else ""


def _is_request(line: bytes) -> bool:
    """Whether a status only reports a request to the API, as `--include-partial-messages` does."""
    found = plain_value(msgspec.Raw(line))
    is_plain = _json.is_object(found) and found.get("permissionMode") is None
    return is_plain and found.get("status") == "requesting"


def _typed(cls: type[WireT], request: dict[str, Any]) -> WireT:
    """Convert a control request; raises if a field is missing that the answer needs."""
    return set_source(msgspec.convert(request, cls), request)


def _is_complete(found: Any) -> TypeGuard[_json.JsonDict]:
    """Whether the input of a hook can be read: a guard must not decide about less than was sent."""
    return (
        _json.is_object(found)
        and bool(found)
        and isinstance(found.get("tool_name", ""), str)
        and _json.is_object(found.get("tool_input", {}))
        and isinstance(found.get("prompt", ""), str)
    )


def _answer_of(pending: _Pending, response: Response) -> Answer | RequestRefused:
    if response.subtype == "error":
        return RequestRefused(pending.operation, response.error, response.error_code)
    line = bytes(response.response)
    try:
        answer: Answer = decoder_of(pending.answer).decode(line)
    except DECODE_ERRORS:
        found = plain_value(response.response)
        fields = found if _json.is_object(found) else {}
        return set_source(read_leniently(pending.answer, fields), fields)
    return set_source(answer, line)


def _read_response(found: Any) -> Response:
    """Read what can be read of a control response that has an unknown shape."""
    fields = found if _json.is_object(found) else {}
    request_id = fields.get("request_id")
    return Response(
        subtype="error" if fields.get("subtype") == "error" else "success",
        request_id=request_id if isinstance(request_id, str) else "",
        response=msgspec.Raw(_json.dump_line(fields.get("response"))),
        error=str(fields.get("error") or "no reason given"),
    )
