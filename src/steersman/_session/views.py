"""What a session waits for, as plain values."""

from __future__ import annotations

from typing import Any

from steersman import _json
from steersman._protocol.events import DialogAsked, ElicitationAsked, PermissionAsked, ToolCalled
from steersman._session.handlers import Handlers
from steersman.control.mcp import TOOL_USE_ID_META
from steersman.journal.snapshot import PendingPermission, PendingToolCall
from steersman.journal.standing import Standing

__all__ = ["add_open"]


def add_open(standing: Standing, handlers: Handlers) -> None:
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
    question = asked.question
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
