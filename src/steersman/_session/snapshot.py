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

__all__ = ["snapshot"]


def snapshot(
    status: Status, handlers: RequestTasks | None, prompts: PromptQueue, session_id: str | None
) -> SessionSnapshot:
    """Where the session stands now, with what is being answered."""
    standing = StateFollower()
    standing.phase, standing.state, standing.since = status.phase, status.state, status.since
    standing.started, standing.completed = status.started, status.completed
    if handlers is not None:
        _add_open(standing, handlers)
    return snapshot_of(standing, prompts.totals, session_id=session_id, queued=prompts.queued)


def _add_open(standing: StateFollower, handlers: RequestTasks) -> None:
    """Put what is being answered into `standing`."""
    for asked, since in handlers.open:
        if isinstance(asked, PermissionAsked):
            standing.permissions[asked.request_id] = pending_permission(
                asked.request_id, asked.request, since
            )
            standing.asks[asked.request_id] = "can_use_tool"
        elif isinstance(asked, ElicitationAsked):
            standing.asks[asked.request_id] = "elicitation"
        elif isinstance(asked, DialogAsked):
            standing.asks[asked.request_id] = "request_user_dialog"
        elif isinstance(asked, ToolCalled) and asked.message.get("method") == "tools/call":
            params = asked.message.get("params")
            standing.tool_calls[asked.request_id] = pending_tool_call(
                asked.server, params if _json.is_object(params) else {}, since
            )
