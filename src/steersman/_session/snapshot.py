"""A running session as a snapshot."""

from __future__ import annotations

from typing import Any

from steersman import _json
from steersman._protocol.events import DialogAsked, ElicitationAsked, PermissionAsked, ToolCalled
from steersman._session.prompt_queue import PromptQueue
from steersman._session.requests.tasks import RequestTasks
from steersman._session.status import Status
from steersman.journal.replaying import snapshot_of
from steersman.journal.snapshot import PendingPermission, PendingToolCall, SessionSnapshot
from steersman.journal.standing import Standing
from steersman.ports import TOOL_USE_ID_META

__all__ = ["snapshot"]


def snapshot(
    status: Status, handlers: RequestTasks | None, prompts: PromptQueue, session_id: str | None
) -> SessionSnapshot:
    """Where the session stands now, with what is being answered."""
    standing = Standing()
    standing.phase, standing.state, standing.since = status.phase, status.state, status.since
    standing.started, standing.completed = status.started, status.completed
    if handlers is not None:
        _add_open(standing, handlers)
    return snapshot_of(standing, prompts.totals, session_id=session_id, queued=prompts.queued)


def _add_open(standing: Standing, handlers: RequestTasks) -> None:
    """Put what is being answered into `standing`."""
    for asked, since in handlers.open:
        if isinstance(asked, PermissionAsked):
            standing.permissions[asked.request_id] = _permission(asked, since)
            standing.asks[asked.request_id] = "can_use_tool"
        elif isinstance(asked, ElicitationAsked):
            standing.asks[asked.request_id] = "elicitation"
        elif isinstance(asked, DialogAsked):
            standing.asks[asked.request_id] = "request_user_dialog"
        elif isinstance(asked, ToolCalled) and asked.message.get("method") == "tools/call":
            standing.tool_calls[asked.request_id] = _tool_call(asked, since)


def _permission(asked: PermissionAsked, since: float) -> PendingPermission:
    question = asked.request
    return PendingPermission(
        request_id=asked.request_id,
        tool_name=question.tool_name,
        input=question.input,
        since=since,
        agent_id=question.agent_id,
        tool_use_id=question.tool_use_id or None,
    )


def _tool_call(asked: ToolCalled, since: float) -> PendingToolCall:
    params = _object(asked.message.get("params"))
    return PendingToolCall(
        tool_use_id=str(_object(params.get("_meta")).get(TOOL_USE_ID_META, "")),
        name=str(params.get("name", "")),
        server=asked.server,
        arguments=_object(params.get("arguments")),
        started=since,
        is_ours=True,
    )


def _object(found: Any) -> dict[str, Any]:
    return found if _json.is_object(found) else {}
