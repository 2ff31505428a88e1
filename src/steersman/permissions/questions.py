"""What the CLI asks before a tool runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steersman._values import Wire

__all__ = ["CanUseTool", "PermissionContext"]


class CanUseTool(Wire, frozen=True, kw_only=True, tag_field="subtype", tag="can_use_tool"):
    """The question as it stands on the wire; `raw` has what is not named here."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str = ""
    display_name: str = ""
    description: str = ""
    permission_suggestions: list[dict[str, Any]] = []
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    agent_id: str | None = None
    requires_user_interaction: bool = False


@dataclass(frozen=True, slots=True)
class PermissionContext:
    """What an approver is told beside the tool's name and input."""

    request_id: str
    session_id: str
    question: CanUseTool

    @property
    def tool_use_id(self) -> str:
        """The id of the tool call, as it stands in the model's message."""
        return self.question.tool_use_id

    @property
    def suggestions(self) -> list[dict[str, Any]]:
        """Rule changes that the CLI offers; give them back in `Allow(updated_permissions=...)`."""
        return self.question.permission_suggestions

    @property
    def agent_id(self) -> str | None:
        """The subagent that wants to run the tool; `None` for the main one."""
        return self.question.agent_id
