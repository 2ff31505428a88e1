"""The values of `Reply.hook_specific_output`: one class per event.

Fields at their default are not sent, because the CLI rejects a reply with a null in it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from steersman._json import Json, JsonDict, is_mapping
from steersman.errors import UsageError

__all__ = [
    "Context",
    "CwdChangedOutput",
    "ElicitationOutput",
    "ElicitationResultOutput",
    "FileChangedOutput",
    "MessageDisplayOutput",
    "ModelSwitchVerdict",
    "NotificationOutput",
    "Output",
    "PermissionDeniedOutput",
    "PermissionRequestOutput",
    "PermissionVerdict",
    "PostModelSwitchOutput",
    "PostToolBatchOutput",
    "PostToolUseFailureOutput",
    "PostToolUseOutput",
    "SessionStartOutput",
    "SetupOutput",
    "StopOutput",
    "SubagentStartOutput",
    "SubagentStopOutput",
    "ToolVerdict",
    "UserPromptExpansionOutput",
    "UserPromptSubmitOutput",
    "WorktreeCreateOutput",
]

DECISIONS = (None, "allow", "deny", "ask", "defer")


class Output(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    tag_field="hookEventName",
):
    """The part of a reply that belongs to one event."""


class Context(Struct, frozen=True, omit_defaults=True):
    """A text for the model, at any event. It is sent as the `additionalContext` of that event."""

    additional_context: str


# Tools


class ToolVerdict(Output, frozen=True, kw_only=True, tag="PreToolUse"):
    """Allow the tool, deny it, ask, or defer it."""

    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: JsonDict | None = None
    additional_context: str | None = None

    def __post_init__(self) -> None:
        if self.permission_decision not in DECISIONS:
            raise UsageError(
                "permission_decision", self.permission_decision, "allow, deny, ask, defer, or None"
            )
        if not (self.updated_input is None or is_mapping(self.updated_input)):
            raise UsageError("updated_input", self.updated_input, "a mapping, or None")
        for text in (self.permission_decision_reason, self.additional_context):
            if not (text is None or isinstance(text, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
                is_reason = text is self.permission_decision_reason
                name = "permission_decision_reason" if is_reason else "additional_context"
                raise UsageError(name, text, "a text, or None")


class PostToolUseOutput(Output, frozen=True, kw_only=True, tag="PostToolUse"):
    """Add context for the model, or replace the result of the tool."""

    additional_context: str | None = None
    classifier_context: str | None = None
    updated_tool_output: Json = None
    """Must have the shape of `tool_response`: for its own tools the CLI ignores any other."""
    updated_mcp_tool_output: Json = field(default=None, name="updatedMCPToolOutput")


class PostToolUseFailureOutput(Output, frozen=True, kw_only=True, tag="PostToolUseFailure"):
    """Add context about the failure for the model."""

    additional_context: str | None = None


class PostToolBatchOutput(Output, frozen=True, kw_only=True, tag="PostToolBatch"):
    """Add context about these tool calls for the model."""

    additional_context: str | None = None


class PermissionVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`allow`, optionally with changed input or new rules; or `deny`, with a message."""

    behavior: Literal["allow", "deny"]
    updated_input: JsonDict | None = None
    updated_permissions: list[JsonDict] | None = None
    message: str | None = None
    interrupt: bool = False


class PermissionRequestOutput(Output, frozen=True, kw_only=True, tag="PermissionRequest"):
    """Decide instead of `can_use_tool`."""

    decision: PermissionVerdict


class PermissionDeniedOutput(Output, frozen=True, kw_only=True, tag="PermissionDenied"):
    """Allow the model to try the tool again, or not."""

    retry: bool | None = None


# Prompts, messages and elicitations


class UserPromptSubmitOutput(Output, frozen=True, kw_only=True, tag="UserPromptSubmit"):
    """Add context to the prompt, name the session, or hide a blocked prompt."""

    additional_context: str | None = None
    session_title: str | None = None
    suppress_original_prompt: bool | None = None


class UserPromptExpansionOutput(Output, frozen=True, kw_only=True, tag="UserPromptExpansion"):
    """Add context to the expanded prompt, or hide a blocked one."""

    additional_context: str | None = None
    suppress_original_prompt: bool | None = None


class NotificationOutput(Output, frozen=True, kw_only=True, tag="Notification"):
    """Add context for the model."""

    additional_context: str | None = None


class MessageDisplayOutput(Output, frozen=True, kw_only=True, tag="MessageDisplay"):
    """Display another text instead of the model's."""

    display_content: str | None = None


class ElicitationOutput(Output, frozen=True, kw_only=True, tag="Elicitation"):
    """Answer instead of the user.

    CLI 2.1.325 ignores these fields. `deny()` does decline the elicitation.
    """

    action: Literal["accept", "decline", "cancel"] | None = None
    content: JsonDict | None = None


class ElicitationResultOutput(Output, frozen=True, kw_only=True, tag="ElicitationResult"):
    """Change the answer that the MCP server receives."""

    action: Literal["accept", "decline", "cancel"] | None = None
    content: JsonDict | None = None


# The session


class SessionStartOutput(Output, frozen=True, kw_only=True, tag="SessionStart"):
    """Context, a first prompt, a title and watched files for the session."""

    additional_context: str | None = None
    initial_user_message: str | None = None
    session_title: str | None = None
    watch_paths: list[str] | None = None
    reload_skills: bool | None = None


class SetupOutput(Output, frozen=True, kw_only=True, tag="Setup"):
    """Add context for the model."""

    additional_context: str | None = None


class StopOutput(Output, frozen=True, kw_only=True, tag="Stop"):
    """Add context for the model."""

    additional_context: str | None = None


class SubagentStartOutput(Output, frozen=True, kw_only=True, tag="SubagentStart"):
    """Add context for the subagent."""

    additional_context: str | None = None


class SubagentStopOutput(Output, frozen=True, kw_only=True, tag="SubagentStop"):
    """Add context for the subagent."""

    additional_context: str | None = None


class ModelSwitchVerdict(Output, frozen=True, kw_only=True, tag="PreModelSwitch"):
    """Allow the change of the model, or deny it."""

    permission_decision: Literal["allow", "deny"] | None = None
    permission_decision_reason: str | None = None


class PostModelSwitchOutput(Output, frozen=True, kw_only=True, tag="PostModelSwitch"):
    """Add context for the new model."""

    additional_context: str | None = None


# Files and directories


class WorktreeCreateOutput(Output, frozen=True, kw_only=True, tag="WorktreeCreate"):
    """The path of the worktree that the callback created."""

    worktree_path: str


class CwdChangedOutput(Output, frozen=True, kw_only=True, tag="CwdChanged"):
    """The files that the CLI shall watch from now on."""

    watch_paths: list[str] | None = None


class FileChangedOutput(Output, frozen=True, kw_only=True, tag="FileChanged"):
    """The files that the CLI shall watch from now on."""

    watch_paths: list[str] | None = None
