"""Control requests that need an answer: permissions, elicitations and dialogs."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from steersman._json import Json, JsonDict
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
    """A permission request for a tool; `raw` also has the fields that are not named here."""

    tool_name: str
    input: JsonDict
    tool_use_id: str = ""
    title: str = ""
    display_name: str = ""
    description: str = ""
    mcp_server: JsonDict | None = None
    permission_suggestions: list[JsonDict] = []
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    matched_ask_rule: Json = None
    suppress_always_allow_rule: bool = False
    default_to_no: bool = False
    classifier_approvable: bool | None = None
    agent_id: str | None = None
    requires_user_interaction: bool = False


class Elicitation(WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="elicitation"):
    """An MCP server asks the user to fill in a form or to open a page."""

    mcp_server_name: str
    message: str = ""
    mode: str = "form"
    requested_schema: JsonDict | None = None
    property_order: list[str] = []
    url: str | None = None
    elicitation_id: str | None = None


class UserDialog(
    WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="request_user_dialog"
):
    """The CLI asks for a dialog of a kind that the option `supported_dialog_kinds` names."""

    dialog_kind: str
    payload: Json = None
    tool_use_id: str | None = None


class PermissionContext(Struct, frozen=True):
    """What an approver receives beside the tool's name and input.

    If the CLI cancels the request, an async approver is cancelled.
    """

    request_id: str
    session_id: str
    question: CanUseTool

    @property
    def tool_use_id(self) -> str:
        """The id of the tool call in the assistant message."""
        return self.question.tool_use_id

    @property
    def suggestions(self) -> list[PermissionUpdate]:
        """Permission updates that the CLI suggests, for `Allow(updated_permissions=...)`.

        `question.permission_suggestions` has them unparsed, unknown kinds included.
        """
        return read_updates(self.question.permission_suggestions)

    @property
    def blocked_path(self) -> str | None:
        """The path that caused the request."""
        return self.question.blocked_path

    @property
    def decision_reason(self) -> str | None:
        """Why the CLI asks, as a text; `question.decision_reason_type` is the kind of reason."""
        return self.question.decision_reason

    @property
    def agent_id(self) -> str | None:
        """The id of the subagent that called the tool; None for the main agent."""
        return self.question.agent_id

    def always(self, scope: Scope = "session") -> Allow:
        """Allow the call, and similar calls in this session or permanently, without a request.

        The updates are those that the CLI suggests: its rules if it suggests any, otherwise all of
        its suggestions. If it suggests nothing, as after a hook's `ask`, the update is a rule for
        exactly this input. `keep` writes the settings file that the CLI names, if the session reads
        that file.
        """
        if scope not in ("session", "keep"):
            raise UsageError("scope", scope, "session or keep")
        return Allow(updated_permissions=remembering_updates(self.question, scope) or None)


def remembering_updates(request: CanUseTool, scope: Scope) -> list[PermissionUpdate]:
    """Return the permission updates after which the CLI does not repeat this request."""
    if request.suppress_always_allow_rule or request.requires_user_interaction:
        return []
    offered = read_updates(request.permission_suggestions)
    rules: list[PermissionUpdate] = [
        each for each in offered if isinstance(each, AddRules | AddDirectories)
    ]
    has_rules = any(isinstance(each, AddRules) for each in rules)
    chosen = rules if has_rules else offered
    if not chosen:
        where: Destination = "session" if scope == "session" else "localSettings"
        return [AddRules(rules=[rule], destination=where) for rule in _rules_for_input(request)]
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
"""Tools with rules for their input: the rule's tool, the input field, and a prefix."""

_WILD = frozenset("*?[]\\\n")


def _rules_for_input(request: CanUseTool) -> list[ToolRule]:
    """Return a rule for exactly this input; nothing if the input contains wildcards."""
    name = request.tool_name
    if name not in _INPUTS:
        return [ToolRule(name)] if name.startswith("mcp__") else []
    tool, field, before = _INPUTS[name]
    given = request.input.get(field)
    if not (isinstance(given, str) and given) or _WILD & set(given):
        return []
    if before and not given.startswith("/"):
        return []
    return [ToolRule(tool, before + given)]
