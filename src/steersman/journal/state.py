"""The state of a session and its open requests, read from entries; and snapshots of them.

Entries in, in order; the state and its changes out. `PHASE` entries contain the state. The open
requests follow from the CLI's control requests and our responses. Other entries are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeGuard, get_args

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._struct import CONVERT_ERRORS
from steersman.control.mcp import TOOL_USE_ID_META
from steersman.journal.journal import Entry, Kind
from steersman.journal.snapshot import (
    PendingPermission,
    PendingToolCall,
    Phase,
    Retrying,
    SessionSnapshot,
    State,
    Stats,
)
from steersman.journal.totals import SessionTotals
from steersman.permissions.questions import CanUseTool

HEAD = 64
"""How many bytes of a sent line contain its type; the rest may be a prompt of megabytes."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """The session entered another state."""

    at: float
    before: State
    after: State


class StateFollower:
    """Follows the phase, the state and the open requests of one session."""

    def __init__(self) -> None:
        self.phase = Phase.IDLE
        self.state: State = "idle"
        self.since = 0.0
        """When the session entered this state; 0 before the first entry."""
        self.started: float | None = None
        self.completed: float | None = None
        self.permissions: dict[str, PendingPermission] = {}
        """Permission requests without an answer, by request id."""
        self.asks: dict[str, str] = {}
        """The subtypes of all control requests that wait for the user, by request id."""
        self.tool_calls: dict[str, PendingToolCall] = {}
        """Running calls of tools in this process, by request id."""
        self._numbers: dict[tuple[str, Json], str] = {}

    def follow(self, entry: Entry) -> StateChange | None:
        """Follow the next entry, and return the change of state that it contains, if any."""
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
        after = entry.details.get("after")
        if not _is_state(after):
            return None
        # While a session waits for a tool or a permission, its phase is RUNNING.
        self.phase = Phase.RUNNING if after.startswith("waiting_") else Phase(after)
        if self.phase is Phase.STARTING and self.started is None:
            self.started = entry.at
        self.completed = entry.at if self.phase.is_over else None
        if self.phase.is_over:
            self._close_all()
        change = StateChange(entry.at, self.state, after)
        self.state, self.since = after, entry.at
        return change

    # Control requests of the CLI

    def _on_control(self, entry: Entry) -> None:
        found = _object(entry.line)
        request_id = str(found.get("request_id", ""))
        if found.get("type") == "control_cancel_request":
            self._close(request_id)
        elif found.get("type") == "control_request":
            request = found.get("request")
            if request_id and _json.is_object(request):
                self._open(request_id, request, entry.at)

    def _open(self, request_id: str, request: JsonDict, at: float) -> None:
        match request.get("subtype"):
            case "can_use_tool":
                # A live session refuses a request that it cannot read, so that one is not open.
                with suppress(*CONVERT_ERRORS):
                    self.open_permission(request_id, msgspec.convert(request, CanUseTool), at)
            case "elicitation" | "request_user_dialog" as subtype:
                self.open_ask(request_id, subtype)
            case "mcp_message":
                message = request.get("message")
                if _json.is_object(message):
                    self.open_tool_call(
                        request_id, str(request.get("server_name", "")), message, at
                    )
            case _:
                pass

    def open_permission(self, request_id: str, request: CanUseTool, since: float) -> None:
        """Add a permission request that waits for a decision."""
        self.permissions.setdefault(request_id, pending_permission(request_id, request, since))
        self.open_ask(request_id, "can_use_tool")

    def open_ask(self, request_id: str, subtype: str) -> None:
        """Add a control request that waits for the user, by its subtype."""
        self.asks.setdefault(request_id, subtype)

    def open_tool_call(
        self, request_id: str, server: str, message: JsonObject, since: float
    ) -> None:
        """Add the tool call in an MCP message; a cancellation ends one, others are ignored."""
        params = _object_at(message, "params")
        if message.get("method") == "notifications/cancelled":
            self._close(self._numbers.get((server, params.get("requestId")), ""))
        elif message.get("method") == "tools/call" and _is_id(message.get("id")):
            self._numbers[server, message["id"]] = request_id
            self.tool_calls.setdefault(request_id, pending_tool_call(server, params, since))

    # Responses to the CLI

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


def snapshot_of(
    state: StateFollower,
    totals: SessionTotals,
    *,
    session_id: str | None = None,
    queued: Iterable[str] = (),
    behind_ask: Iterable[str] = (),
) -> SessionSnapshot:
    """Return the snapshot of a session with this state and these totals."""
    return SessionSnapshot(
        state=state.state,
        phase=state.phase,
        since=state.since,
        session_id=session_id,
        pending_tool_calls=_pending_calls(state, totals),
        pending_permissions=tuple(state.permissions.values()),
        open_asks=tuple(state.asks),
        tasks=totals.running_tasks,
        queued=tuple(queued),
        behind_ask=tuple(behind_ask),
        retrying=_retrying(totals),
        stats=Stats(
            started=state.started,
            completed=state.completed,
            tool_calls=totals.calls.count,
            messages=totals.messages,
            turns=totals.settled,
            cost_usd=totals.cost_usd,
        ),
    )


def _pending_calls(state: StateFollower, totals: SessionTotals) -> tuple[PendingToolCall, ...]:
    """Return the calls without a result, with those that run in this process marked."""
    ours = {call.tool_use_id: call for call in state.tool_calls.values()}
    asked = [
        PendingToolCall(
            tool_use_id=call.tool_use_id,
            name=call.name,
            server=call.server,
            arguments=call.input,
            started=call.started,
        )
        for call in totals.calls.running
    ]
    known = {call.tool_use_id for call in asked}
    return (
        *(replace(each, is_ours=each.tool_use_id in ours) for each in asked),
        *(call for call in state.tool_calls.values() if call.tool_use_id not in known),
    )


def _retrying(totals: SessionTotals) -> Retrying | None:
    if totals.retry is None:
        return None
    retry, at = totals.retry
    return Retrying(
        attempt=retry.attempt,
        most=retry.max_retries,
        until=at + retry.retry_delay_ms / 1000,
        error=retry.error,
    )


def pending_permission(request_id: str, request: CanUseTool, since: float) -> PendingPermission:
    """Return `request` as a snapshot shows it."""
    return PendingPermission(
        request_id=request_id,
        tool_name=request.tool_name,
        input=request.input,
        since=since,
        agent_id=request.agent_id,
        tool_use_id=request.tool_use_id or None,
    )


def pending_tool_call(server: str, params: JsonObject, started: float) -> PendingToolCall:
    """Return a call of an in-process tool as a snapshot shows it; `params` are those of MCP."""
    return PendingToolCall(
        tool_use_id=str(_object_at(params, "_meta").get(TOOL_USE_ID_META, "")),
        name=str(params.get("name", "")),
        server=server,
        arguments=_object_at(params, "arguments"),
        started=started,
        is_ours=True,
    )


def _object_at(found: JsonObject, name: str) -> JsonDict:
    value = found.get(name)
    return value if _json.is_object(value) else {}


def _is_state(found: object) -> TypeGuard[State]:
    return found in get_args(State)


def _is_id(found: object) -> bool:
    """Whether `found` can be the id of a JSON-RPC request; a notification has none."""
    return isinstance(found, str | int | float)


def _object(line: bytes) -> JsonDict:
    try:
        found = _json.loads(line)
    except ValueError:
        return {}
    return found if _json.is_object(found) else {}
