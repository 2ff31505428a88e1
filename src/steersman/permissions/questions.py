"""What the CLI asks: may a tool run, what does a person say to a server or to a dialog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steersman._values import Wire

__all__ = ["CanUseTool", "Elicitation", "PermissionContext", "UserDialog"]


class CanUseTool(Wire, frozen=True, kw_only=True, tag_field="subtype", tag="can_use_tool"):
    """The question as it stands on the wire; `raw` has what is not named here."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str = ""
    title: str = ""
    display_name: str = ""
    description: str = ""
    mcp_server: dict[str, Any] | None = None
    permission_suggestions: list[dict[str, Any]] = []
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    agent_id: str | None = None
    requires_user_interaction: bool = False


class Elicitation(Wire, frozen=True, kw_only=True, tag_field="subtype", tag="elicitation"):
    """An MCP server wants something of the person: a form filled in, or a page opened."""

    mcp_server_name: str
    message: str = ""
    mode: str = "form"
    requested_schema: dict[str, Any] | None = None
    property_order: list[str] = []
    url: str | None = None
    elicitation_id: str | None = None


class UserDialog(Wire, frozen=True, kw_only=True, tag_field="subtype", tag="request_user_dialog"):
    """The CLI wants a dialog shown, of a kind that `supported_dialog_kinds` promised."""

    dialog_kind: str
    payload: Any = None
    tool_use_id: str | None = None


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
