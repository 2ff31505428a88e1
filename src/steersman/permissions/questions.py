"""What the CLI asks: may a tool run, what does a person say to a server or to a dialog."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from steersman._struct import WireStruct
from steersman.errors import UsageError
from steersman.permissions.decisions import Allow
from steersman.permissions.updates import (
    AddDirectories,
    AddRules,
    Destination,
    PermissionUpdate,
    ToolRule,
    read_updates,
)

__all__ = ["CanUseTool", "Elicitation", "PermissionContext", "Scope", "UserDialog"]

Scope = Literal["session", "keep"]


class CanUseTool(WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="can_use_tool"):
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
    matched_ask_rule: Any = None
    suppress_always_allow_rule: bool = False
    default_to_no: bool = False
    classifier_approvable: bool | None = None
    agent_id: str | None = None
    requires_user_interaction: bool = False


class Elicitation(WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="elicitation"):
    """An MCP server wants something of the person: a form filled in, or a page opened."""

    mcp_server_name: str
    message: str = ""
    mode: str = "form"
    requested_schema: dict[str, Any] | None = None
    property_order: list[str] = []
    url: str | None = None
    elicitation_id: str | None = None


class UserDialog(
    WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="request_user_dialog"
):
    """The CLI wants a dialog shown, of a kind that `supported_dialog_kinds` promised."""

    dialog_kind: str
    payload: Any = None
    tool_use_id: str | None = None


class PermissionContext(Struct, frozen=True):
    """What an approver is told beside the tool's name and input.

    When the CLI takes the question back, an async approver is cancelled.
    """

    request_id: str
    session_id: str
    question: CanUseTool

    @property
    def tool_use_id(self) -> str:
        """The id of the tool call, as it stands in the model's message."""
        return self.question.tool_use_id

    @property
    def suggestions(self) -> list[PermissionUpdate]:
        """Changes that the CLI offers; give them back in `Allow(updated_permissions=...)`.

        `question.permission_suggestions` has them as they came, with kinds unknown to us.
        """
        return read_updates(self.question.permission_suggestions)

    @property
    def blocked_path(self) -> str | None:
        """The path that made the CLI ask."""
        return self.question.blocked_path

    @property
    def decision_reason(self) -> str | None:
        """Why the CLI asks, in words; `question.decision_reason_type` in one word."""
        return self.question.decision_reason

    @property
    def agent_id(self) -> str | None:
        """The subagent that wants to run the tool; `None` for the main one."""
        return self.question.agent_id

    def always(self, scope: Scope = "session") -> Allow:
        """Let it run, and do not ask about its like again: in this session, or for good.

        What the CLI offers is taken at its word: rules where it has some, else all that it offers.
        Where it offers nothing, as after a hook's `ask`, it is a rule for this very input. `keep`
        writes the settings file that the CLI names, if the session reads it.
        """
        if scope not in ("session", "keep"):
            raise UsageError("scope", scope, "session or keep")
        return Allow(updated_permissions=lasting(self.question, scope) or None)


def lasting(question: CanUseTool, scope: Scope) -> list[PermissionUpdate]:
    """The changes after which the CLI would not ask this question again."""
    if question.suppress_always_allow_rule or question.requires_user_interaction:
        return []
    offered = read_updates(question.permission_suggestions)
    rules: list[PermissionUpdate] = [
        each for each in offered if isinstance(each, AddRules | AddDirectories)
    ]
    has_rules = any(isinstance(each, AddRules) for each in rules)
    chosen = rules if has_rules else offered
    if not chosen:
        where: Destination = "session" if scope == "session" else "localSettings"
        return [AddRules(rules=[rule], destination=where) for rule in _narrowest(question)]
    if scope == "keep":
        return chosen
    return [msgspec.structs.replace(each, destination="session") for each in chosen]


_INPUTS = {
    "Bash": ("Bash", "command", ""),
    "Edit": ("Edit", "file_path", "/"),
    "NotebookEdit": ("Edit", "notebook_path", "/"),
    "Read": ("Read", "file_path", "/"),
    "Write": ("Edit", "file_path", "/"),
}
"""Tools with rules for their input: the rule's name, the field, and what stands before it."""

_WILD = frozenset("*?[]\\\n")


def _narrowest(question: CanUseTool) -> list[ToolRule]:
    """A rule for this input and no other; none where the input would read as a pattern."""
    name = question.tool_name
    if name not in _INPUTS:
        return [ToolRule(name)] if name.startswith("mcp__") else []
    tool, field, before = _INPUTS[name]
    given = question.input.get(field)
    if not (isinstance(given, str) and given) or _WILD & set(given):
        return []
    if before and not given.startswith("/"):
        return []
    return [ToolRule(tool, before + given)]
