"""Replies of hooks, and functions that make them.

`allow`, `deny`, `ask` and `context` work at every event that has such a reply: `reply_checks`
converts them into the form that the event needs.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from steersman._json import Json, JsonDict, is_mapping
from steersman.errors import UsageError

__all__ = [
    "AsyncReply",
    "CommonReply",
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
    "Reply",
    "SessionStartOutput",
    "SetupOutput",
    "StopOutput",
    "SubagentStartOutput",
    "SubagentStopOutput",
    "ToolVerdict",
    "UserPromptExpansionOutput",
    "UserPromptSubmitOutput",
    "WorktreeCreateOutput",
    "allow",
    "ask",
    "block",
    "context",
    "defer",
    "deny",
    "modify",
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


class CommonReply(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The fields that a reply may have at every event."""

    continue_: bool = field(default=True, name="continue")
    """False ends the turn, and from a guard without a decision of its own it stops the action.

    From another hook at `PreToolUse` the tool still runs: use `deny()` to stop it."""
    suppress_output: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    """A message that the CLI shows to the user."""
    terminal_sequence: str | None = None
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None


class Reply(CommonReply, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The reply of a hook: the common fields, and those of its event."""

    hook_specific_output: Output | Context | JsonDict | None = None

    def __post_init__(self) -> None:
        if self.decision not in (None, "approve", "block"):
            raise UsageError("decision", self.decision, "approve, block, or None")
        if not isinstance(self.continue_, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("continue_", self.continue_, "True or False")


class AsyncReply(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A reply with which the CLI does not wait for the hook, and ignores what it decides.

    From a guard it stops the action.
    """

    async_: Literal[True] = field(name="async")
    async_timeout: int | None = None
    """In milliseconds, as on the wire."""


def allow(*, updated_input: JsonDict | None = None, reason: str | None = None) -> Reply:
    """Allow the action without a permission request, optionally with changed input."""
    _check_input(updated_input, may_be_none=True)
    _check_reason(reason, may_be_none=True)
    verdict = ToolVerdict(
        permission_decision="allow",
        permission_decision_reason=reason,
        updated_input=updated_input,
    )
    return Reply(hook_specific_output=verdict)


def modify(updated_input: JsonDict) -> Reply:
    """Change the input and leave the decision to others, who see the changed input."""
    _check_input(updated_input)
    return Reply(hook_specific_output=ToolVerdict(updated_input=updated_input))


def deny(reason: str) -> Reply:
    """Stop the action. The model reads `reason`; at a prompt, the user does."""
    return _decided("deny", reason)


def ask(reason: str | None = None) -> Reply:
    """Make the CLI request a permission, in every mode and against every rule (`PreToolUse`)."""
    return _decided("ask", reason)


def defer(reason: str | None = None) -> Reply:
    """Defer the tool of a `PreToolUse`: the turn ends, and the resumed session asks again.

    Works for the main agent, not for tools of this process, and once per turn; otherwise the tool
    is denied, because the CLI would lose the call.
    """
    return _decided("defer", reason)


def block(reason: str) -> Reply:
    """Reply with the CLI's `decision: block`.

    At `Stop` the turn then continues, with `reason` as its next prompt.
    """
    _check_reason(reason)
    return Reply(decision="block", reason=reason)


def context(text: str) -> Reply:
    """Add a text for the model."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("text", text, "a text for the model")
    return Reply(hook_specific_output=Context(text))


def _decided(decision: Literal["deny", "ask", "defer"], reason: str | None) -> Reply:
    _check_reason(reason, may_be_none=decision != "deny")
    verdict = ToolVerdict(permission_decision=decision, permission_decision_reason=reason)
    return Reply(hook_specific_output=verdict)


def _check_reason(reason: object, *, may_be_none: bool = False) -> None:
    if not (isinstance(reason, str) or (may_be_none and reason is None)):
        raise UsageError("reason", reason, "a text" + (", or None" if may_be_none else ""))


def _check_input(given: object, *, may_be_none: bool = False) -> None:
    if not (is_mapping(given) or (may_be_none and given is None)):
        raise UsageError("updated_input", given, "a mapping" + (", or None" if may_be_none else ""))
