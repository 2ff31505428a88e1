"""A running session as a snapshot."""

from __future__ import annotations

from steersman import _json
from steersman._protocol.events import DialogAsked, ElicitationAsked, PermissionAsked, ToolCalled
from steersman._session.prompt_queue import PromptQueue
from steersman._session.requests.tasks import RequestTasks
from steersman._session.status import Status
from steersman.journal.snapshot import SessionSnapshot
from steersman.journal.state import (
    StateFollower,
    pending_permission,
    pending_tool_call,
    snapshot_of,
)
from steersman.permissions import CanUseTool


def snapshot(
    status: Status, tasks: RequestTasks | None, prompts: PromptQueue, session_id: str | None
) -> SessionSnapshot:
    """Return the current state, with the requests that are being answered."""
    state = StateFollower()
    state.phase, state.state, state.since = status.phase, status.state, status.since
    state.started, state.completed = status.started, status.completed
    if tasks is not None:
        _add_open(state, tasks)
    is_asking = status.state == "waiting_permission"
    return snapshot_of(
        state,
        prompts.totals,
        session_id=session_id,
        queued=prompts.queued,
        behind_ask=prompts.not_begun if is_asking else (),
    )


def _add_open(state: StateFollower, tasks: RequestTasks) -> None:
    """Add the requests that are being answered."""
    for ask in tasks.held:
        if isinstance(ask.payload, CanUseTool):
            state.permissions[ask.id] = pending_permission(ask.id, ask.payload, ask.created)
            state.asks[ask.id] = "can_use_tool"
    for asked, since in tasks.open:
        if isinstance(asked, PermissionAsked):
            state.permissions[asked.request_id] = pending_permission(
                asked.request_id, asked.request, since
            )
            state.asks[asked.request_id] = "can_use_tool"
        elif isinstance(asked, ElicitationAsked):
            state.asks[asked.request_id] = "elicitation"
        elif isinstance(asked, DialogAsked):
            state.asks[asked.request_id] = "request_user_dialog"
        elif isinstance(asked, ToolCalled) and asked.message.get("method") == "tools/call":
            params = asked.message.get("params")
            state.tool_calls[asked.request_id] = pending_tool_call(
                asked.server, params if _json.is_object(params) else {}, since
            )
