"""Where a session stands: its state, what it waits for, and when each of that began.

Entries in, in order; the state and its changes out. The state is told by the entries themselves;
what is open is read off control lines and answers. All other entries are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard, get_args

from steersman import _json
from steersman.control.mcp import TOOL_USE_ID_META
from steersman.journal.entries import Entry, Kind
from steersman.journal.phases import Phase
from steersman.journal.snapshot import PendingPermission, PendingToolCall, State

__all__ = ["Standing", "StateChange"]

HEAD = 64
"""Where in a line of ours its type stands; a prompt behind it may be megabytes."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """The session came into another state."""

    at: float
    before: State
    after: State


class Standing:
    """Follows the phase and the open set of one session."""

    def __init__(self) -> None:
        self.phase = Phase.IDLE
        self.state: State = "idle"
        self.since = 0.0
        """When it came into this state; 0 before the first entry."""
        self.started: float | None = None
        self.completed: float | None = None
        self.permissions: dict[str, PendingPermission] = {}
        """Permission questions without an answer, by request id."""
        self.asks: dict[str, str] = {}
        """Everything that waits for a person, by request id: the CLI's word for it."""
        self.tool_calls: dict[str, PendingToolCall] = {}
        """Tools of this process that run now, by request id."""
        self._numbers: dict[tuple[str, Any], str] = {}

    def hear(self, entry: Entry) -> StateChange | None:
        """What the next entry changes; most change nothing."""
        match entry.kind:
            case Kind.CONTROL:
                self._on_control(entry)
            case Kind.SENT:
                self._on_sent(entry)
            case Kind.PHASE:
                return self._on_phase(entry)
            case Kind.RESTARTED:
                self._close_all()
            case _:
                pass
        return None

    def _on_phase(self, entry: Entry) -> StateChange | None:
        told = entry.details.get("after")
        if not _is_state(told):
            return None
        # What a session waits for is told as a state of its own; meanwhile it runs.
        self.phase = Phase.RUNNING if told.startswith("waiting_") else Phase(told)
        if self.phase is Phase.STARTING and self.started is None:
            self.started = entry.at
        self.completed = entry.at if self.phase.is_over else None
        if self.phase.is_over:
            self._close_all()
        change = StateChange(entry.at, self.state, told)
        self.state, self.since = told, entry.at
        return change

    # Questions of the CLI's

    def _on_control(self, entry: Entry) -> None:
        found = _object(entry.line)
        request_id = str(found.get("request_id", ""))
        if found.get("type") == "control_cancel_request":
            self._close(request_id)
        elif found.get("type") == "control_request":
            request = found.get("request")
            if request_id and _json.is_object(request):
                self._open(request_id, request, entry.at)

    def _open(self, request_id: str, request: dict[str, Any], at: float) -> None:
        match request.get("subtype"):
            case "can_use_tool":
                self.permissions.setdefault(request_id, _permission(request_id, request, at))
                self.asks.setdefault(request_id, "can_use_tool")
            case "elicitation" | "request_user_dialog" as subtype:
                self.asks.setdefault(request_id, subtype)
            case "mcp_message":
                message = request.get("message")
                if _json.is_object(message):
                    self._call(request_id, str(request.get("server_name", "")), message, at)
            case _:
                pass

    def _call(self, request_id: str, server: str, message: dict[str, Any], at: float) -> None:
        params = message.get("params")
        params = params if _json.is_object(params) else {}
        if message.get("method") == "notifications/cancelled":
            self._close(self._numbers.get((server, params.get("requestId")), ""))
        elif message.get("method") == "tools/call" and _is_id(message.get("id")):
            self._numbers[server, message["id"]] = request_id
            self.tool_calls.setdefault(request_id, _tool_call(server, params, at))

    # Answers of ours

    def _on_sent(self, entry: Entry) -> None:
        if b'"control_response"' not in entry.line[:HEAD]:
            return
        response = _object(entry.line).get("response")
        if _json.is_object(response):
            self._close(str(response.get("request_id", "")))

    def _close(self, request_id: str) -> None:
        self.permissions.pop(request_id, None)
        self.asks.pop(request_id, None)
        if self.tool_calls.pop(request_id, None) is not None:
            self._numbers = {
                number: each for number, each in self._numbers.items() if each != request_id
            }

    def _close_all(self) -> None:
        for open_ones in (self.permissions, self.asks, self.tool_calls, self._numbers):
            open_ones.clear()


def _permission(request_id: str, request: dict[str, Any], at: float) -> PendingPermission:
    given, agent_id = request.get("input"), request.get("agent_id")
    return PendingPermission(
        request_id=request_id,
        tool_name=str(request.get("tool_name", "")),
        input=given if _json.is_object(given) else {},
        since=at,
        agent_id=agent_id if isinstance(agent_id, str) else None,
        tool_use_id=str(request.get("tool_use_id") or "") or None,
    )


def _tool_call(server: str, params: dict[str, Any], at: float) -> PendingToolCall:
    given, meta = params.get("arguments"), params.get("_meta")
    return PendingToolCall(
        tool_use_id=str(meta.get(TOOL_USE_ID_META, "")) if _json.is_object(meta) else "",
        name=str(params.get("name", "")),
        server=server,
        arguments=given if _json.is_object(given) else {},
        started=at,
        is_ours=True,
    )


def _is_state(found: object) -> TypeGuard[State]:
    return found in get_args(State)


def _is_id(found: object) -> bool:
    """Whether it can be the id of a JSON-RPC request, which has an answer."""
    return isinstance(found, str | int | float)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = _json.loads(line)
    except ValueError:
        return {}
    return found if _json.is_object(found) else {}
