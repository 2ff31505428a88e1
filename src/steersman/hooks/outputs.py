"""What a reply may say about its own event: `Reply.hook_specific_output`, one class per event.

A field that is left out is not sent: the CLI takes a null for an invalid answer.
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
    """Something the model should know, at whatever event; becomes that event's own output."""

    additional_context: str


# Tools


class ToolVerdict(Output, frozen=True, kw_only=True, tag="PreToolUse"):
    """Let the tool run, stop it, ask, or put it off."""

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
                raise UsageError("permission_decision_reason", text, "a text, or None")


class PostToolUseOutput(Output, frozen=True, kw_only=True, tag="PostToolUse"):
    """Tell the model more, or show it another result than the tool gave."""

    additional_context: str | None = None
    classifier_context: str | None = None
    updated_tool_output: Json = None
    """In the shape of `tool_response`: the CLI ignores another for its own tools."""
    updated_mcp_tool_output: Json = field(default=None, name="updatedMCPToolOutput")


class PostToolUseFailureOutput(Output, frozen=True, kw_only=True, tag="PostToolUseFailure"):
    """Tell the model more about the failure."""

    additional_context: str | None = None


class PostToolBatchOutput(Output, frozen=True, kw_only=True, tag="PostToolBatch"):
    """Tell the model more about the round of tools."""

    additional_context: str | None = None


class PermissionVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`allow`, perhaps with other input or new rules; or `deny`, with a message."""

    behavior: Literal["allow", "deny"]
    updated_input: JsonDict | None = None
    updated_permissions: list[JsonDict] | None = None
    message: str | None = None
    interrupt: bool = False


class PermissionRequestOutput(Output, frozen=True, kw_only=True, tag="PermissionRequest"):
    """Decide in place of `can_use_tool`."""

    decision: PermissionVerdict


class PermissionDeniedOutput(Output, frozen=True, kw_only=True, tag="PermissionDenied"):
    """Whether the model may try again."""

    retry: bool | None = None


# Prompts, and what people see


class UserPromptSubmitOutput(Output, frozen=True, kw_only=True, tag="UserPromptSubmit"):
    """Add to the prompt, name the session, or hide a blocked prompt."""

    additional_context: str | None = None
    session_title: str | None = None
    suppress_original_prompt: bool | None = None


class UserPromptExpansionOutput(Output, frozen=True, kw_only=True, tag="UserPromptExpansion"):
    """Add to what a command becomes, or hide a blocked one."""

    additional_context: str | None = None
    suppress_original_prompt: bool | None = None


class NotificationOutput(Output, frozen=True, kw_only=True, tag="Notification"):
    """Tell the model more."""

    additional_context: str | None = None


class MessageDisplayOutput(Output, frozen=True, kw_only=True, tag="MessageDisplay"):
    """Show another text than the model wrote."""

    display_content: str | None = None


class ElicitationOutput(Output, frozen=True, kw_only=True, tag="Elicitation"):
    """Answer in place of the person. CLI 2.1.325 ignores it; `deny()` does decline."""

    action: Literal["accept", "decline", "cancel"] | None = None
    content: JsonDict | None = None


class ElicitationResultOutput(Output, frozen=True, kw_only=True, tag="ElicitationResult"):
    """Change what the server gets to hear."""

    action: Literal["accept", "decline", "cancel"] | None = None
    content: JsonDict | None = None


# The session


class SessionStartOutput(Output, frozen=True, kw_only=True, tag="SessionStart"):
    """Give the session something to begin with."""

    additional_context: str | None = None
    initial_user_message: str | None = None
    session_title: str | None = None
    watch_paths: list[str] | None = None
    reload_skills: bool | None = None


class SetupOutput(Output, frozen=True, kw_only=True, tag="Setup"):
    """Tell the model more."""

    additional_context: str | None = None


class StopOutput(Output, frozen=True, kw_only=True, tag="Stop"):
    """Tell the model more."""

    additional_context: str | None = None


class SubagentStartOutput(Output, frozen=True, kw_only=True, tag="SubagentStart"):
    """Tell the subagent more."""

    additional_context: str | None = None


class SubagentStopOutput(Output, frozen=True, kw_only=True, tag="SubagentStop"):
    """Tell the subagent more."""

    additional_context: str | None = None


class ModelSwitchVerdict(Output, frozen=True, kw_only=True, tag="PreModelSwitch"):
    """Let the model be changed, or not."""

    permission_decision: Literal["allow", "deny"] | None = None
    permission_decision_reason: str | None = None


class PostModelSwitchOutput(Output, frozen=True, kw_only=True, tag="PostModelSwitch"):
    """Tell the new model more."""

    additional_context: str | None = None


# Places


class WorktreeCreateOutput(Output, frozen=True, kw_only=True, tag="WorktreeCreate"):
    """Where the worktree is that the callback has made."""

    worktree_path: str


class CwdChangedOutput(Output, frozen=True, kw_only=True, tag="CwdChanged"):
    """Files to watch from now on."""

    watch_paths: list[str] | None = None


class FileChangedOutput(Output, frozen=True, kw_only=True, tag="FileChanged"):
    """Files to watch from now on."""

    watch_paths: list[str] | None = None
