"""Hook events: one class per moment at which the CLI calls hooks.

To add an event, write its class and name it in `__all__`. Its name is the CLI's name for it.
"""

from __future__ import annotations

from typing import ClassVar

from steersman._json import Json, JsonDict
from steersman._struct import WireStruct
from steersman.hooks.replies import (
    CwdChangedOutput,
    ElicitationOutput,
    ElicitationResultOutput,
    FileChangedOutput,
    MessageDisplayOutput,
    ModelSwitchVerdict,
    NotificationOutput,
    Output,
    PermissionDeniedOutput,
    PermissionRequestOutput,
    PostModelSwitchOutput,
    PostToolBatchOutput,
    PostToolUseFailureOutput,
    PostToolUseOutput,
    SessionStartOutput,
    SetupOutput,
    StopOutput,
    SubagentStartOutput,
    SubagentStopOutput,
    ToolVerdict,
    UserPromptExpansionOutput,
    UserPromptSubmitOutput,
    WorktreeCreateOutput,
)

__all__ = [
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "HookEvent",
    "InstructionsLoaded",
    "MessageDisplay",
    "Notification",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "PostModelSwitch",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PreModelSwitch",
    "PreToolUse",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
]


class HookEvent(WireStruct, frozen=True, kw_only=True, tag_field="hook_event_name"):
    """The fields that every hook event has; `raw` also has those that a class does not name."""

    OUTPUT: ClassVar[type[Output] | None] = None
    """The class of `Reply.hook_specific_output` for this event; None if there is none."""
    MATCHED: ClassVar[str] = ""
    """The field that matchers are compared with; empty if the CLI has no matchers for the event."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    prompt_id: str = ""
    permission_mode: str = ""
    agent_id: str | None = None
    agent_type: str | None = None
    effort: JsonDict | None = None

    @classmethod
    def event_name(cls) -> str:
        """The CLI's name for the event."""
        return str(cls.__struct_config__.tag)

    @property
    def matched(self) -> str:
        """The value that a matcher is compared with."""
        return str(getattr(self, self.MATCHED)) if self.MATCHED else ""


# Tools


class _ToolEvent(HookEvent, frozen=True, kw_only=True):
    """The common fields of events about one tool."""

    MATCHED: ClassVar[str] = "tool_name"

    tool_name: str = ""
    tool_input: JsonDict = {}


class PreToolUse(_ToolEvent, frozen=True, kw_only=True, tag="PreToolUse"):
    """A tool is about to run."""

    OUTPUT: ClassVar[type[Output] | None] = ToolVerdict

    tool_use_id: str = ""
    mcp_server: JsonDict | None = None


class PostToolUse(_ToolEvent, frozen=True, kw_only=True, tag="PostToolUse"):
    """A tool has run."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolUseOutput

    tool_use_id: str = ""
    tool_response: Json = None
    duration_ms: float = 0.0
    mcp_server: JsonDict | None = None


class PostToolUseFailure(_ToolEvent, frozen=True, kw_only=True, tag="PostToolUseFailure"):
    """A tool has failed."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolUseFailureOutput

    tool_use_id: str = ""
    error: str = ""
    is_interrupt: bool = False
    duration_ms: float = 0.0
    mcp_server: JsonDict | None = None


class PostToolBatch(HookEvent, frozen=True, kw_only=True, tag="PostToolBatch"):
    """All tool calls of one assistant message have ended."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolBatchOutput

    tool_calls: list[JsonDict] = []


class PermissionRequest(_ToolEvent, frozen=True, kw_only=True, tag="PermissionRequest"):
    """The CLI requests a permission. It calls this hook and `can_use_tool` at the same time."""

    OUTPUT: ClassVar[type[Output] | None] = PermissionRequestOutput

    permission_suggestions: list[JsonDict] = []
    mcp_server: JsonDict | None = None


class PermissionDenied(_ToolEvent, frozen=True, kw_only=True, tag="PermissionDenied"):
    """The permission mode `auto` has denied a tool."""

    OUTPUT: ClassVar[type[Output] | None] = PermissionDeniedOutput

    tool_use_id: str = ""
    reason: str = ""
    mcp_server: JsonDict | None = None


# Prompts, messages and elicitations


class UserPromptSubmit(HookEvent, frozen=True, kw_only=True, tag="UserPromptSubmit"):
    """A prompt is about to be sent to the model."""

    OUTPUT: ClassVar[type[Output] | None] = UserPromptSubmitOutput

    prompt: str = ""
    source: str = ""
    session_title: str | None = None


class UserPromptExpansion(HookEvent, frozen=True, kw_only=True, tag="UserPromptExpansion"):
    """A slash command, or a prompt of an MCP server, is about to be expanded into a prompt."""

    OUTPUT: ClassVar[type[Output] | None] = UserPromptExpansionOutput
    MATCHED: ClassVar[str] = "command_name"

    expansion_type: str = ""
    command_name: str = ""
    command_args: str = ""
    command_source: str | None = None
    prompt: str = ""


class MessageDisplay(HookEvent, frozen=True, kw_only=True, tag="MessageDisplay"):
    """A part of the model's text is about to be displayed."""

    OUTPUT: ClassVar[type[Output] | None] = MessageDisplayOutput

    turn_id: str = ""
    message_id: str = ""
    index: int = 0
    final: bool = False
    delta: str = ""


class Notification(HookEvent, frozen=True, kw_only=True, tag="Notification"):
    """The CLI notifies the user."""

    OUTPUT: ClassVar[type[Output] | None] = NotificationOutput
    MATCHED: ClassVar[str] = "notification_type"

    message: str = ""
    title: str | None = None
    notification_type: str = ""


class Elicitation(HookEvent, frozen=True, kw_only=True, tag="Elicitation"):
    """An MCP server requests input from the user."""

    OUTPUT: ClassVar[type[Output] | None] = ElicitationOutput
    MATCHED: ClassVar[str] = "mcp_server_name"

    mcp_server_name: str = ""
    message: str = ""
    mode: str = ""
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: JsonDict | None = None


class ElicitationResult(HookEvent, frozen=True, kw_only=True, tag="ElicitationResult"):
    """The user has answered an elicitation of an MCP server."""

    OUTPUT: ClassVar[type[Output] | None] = ElicitationResultOutput
    MATCHED: ClassVar[str] = "mcp_server_name"

    mcp_server_name: str = ""
    elicitation_id: str | None = None
    mode: str = ""
    action: str = ""
    content: JsonDict | None = None


# The session


class SessionStart(HookEvent, frozen=True, kw_only=True, tag="SessionStart"):
    """A session starts, or continues with a new context.

    The CLI calls hooks for the sources `clear` and `compact`. For `startup`, `resume` and `fork`
    our session runs them, because the CLI does not.
    """

    OUTPUT: ClassVar[type[Output] | None] = SessionStartOutput
    MATCHED: ClassVar[str] = "source"

    source: str = ""
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: float | None = None
    context_tokens: int | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: float | None = None


class SessionEnd(HookEvent, frozen=True, kw_only=True, tag="SessionEnd"):
    """A session ends.

    The CLI calls hooks for the reason `clear`. At the end, our session runs them with the reason
    `other`.
    """

    MATCHED: ClassVar[str] = "reason"

    reason: str = ""


class Setup(HookEvent, frozen=True, kw_only=True, tag="Setup"):
    """A repository is set up. The CLI runs these hooks before callbacks can be registered."""

    OUTPUT: ClassVar[type[Output] | None] = SetupOutput
    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""


class Stop(HookEvent, frozen=True, kw_only=True, tag="Stop"):
    """The turn is about to end."""

    OUTPUT: ClassVar[type[Output] | None] = StopOutput

    stop_hook_active: bool = False
    last_assistant_message: str | None = None
    background_tasks: list[JsonDict] = []
    session_crons: list[JsonDict] = []


class StopFailure(HookEvent, frozen=True, kw_only=True, tag="StopFailure"):
    """The turn has ended with an API error."""

    MATCHED: ClassVar[str] = "error"

    error: str = ""
    error_details: Json = None
    last_assistant_message: str | None = None


class PreCompact(HookEvent, frozen=True, kw_only=True, tag="PreCompact"):
    """The conversation is about to be compacted."""

    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""
    custom_instructions: str | None = None


class PostCompact(HookEvent, frozen=True, kw_only=True, tag="PostCompact"):
    """The conversation has been compacted."""

    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""
    compact_summary: str = ""


class _ModelSwitch(HookEvent, frozen=True, kw_only=True):
    """The common fields of the events before and after a change of the model."""

    MATCHED: ClassVar[str] = "to_model"

    from_model: str = ""
    to_model: str = ""
    requested_model: str = ""
    source: str = ""
    context_tokens: int = 0
    prompt_cache_warm: bool = False
    cache_ttl: str = ""
    estimated_cache_write_usd: float = 0.0
    pricing: str = ""


class PreModelSwitch(_ModelSwitch, frozen=True, kw_only=True, tag="PreModelSwitch"):
    """The model is about to be changed, by `session.set_model()` or a command."""

    OUTPUT: ClassVar[type[Output] | None] = ModelSwitchVerdict


class PostModelSwitch(_ModelSwitch, frozen=True, kw_only=True, tag="PostModelSwitch"):
    """The model has been changed."""

    OUTPUT: ClassVar[type[Output] | None] = PostModelSwitchOutput


# Subagents, teammates and tasks


class SubagentStart(HookEvent, frozen=True, kw_only=True, tag="SubagentStart"):
    """A subagent starts."""

    OUTPUT: ClassVar[type[Output] | None] = SubagentStartOutput
    MATCHED: ClassVar[str] = "agent_type"


class SubagentStop(HookEvent, frozen=True, kw_only=True, tag="SubagentStop"):
    """A subagent is about to end. The subagent that compacts a conversation has no type."""

    OUTPUT: ClassVar[type[Output] | None] = SubagentStopOutput
    MATCHED: ClassVar[str] = "agent_type"

    stop_hook_active: bool = False
    agent_transcript_path: str = ""
    last_assistant_message: str | None = None
    background_tasks: list[JsonDict] = []
    session_crons: list[JsonDict] = []


class TeammateIdle(HookEvent, frozen=True, kw_only=True, tag="TeammateIdle"):
    """A teammate has nothing to do. CLI 2.1.325 was not observed to call hooks for it."""

    teammate_name: str = ""
    team_name: str = ""


class _TaskEvent(HookEvent, frozen=True, kw_only=True):
    """The common fields of events about one task of the task list."""

    task_id: str = ""
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreated(_TaskEvent, frozen=True, kw_only=True, tag="TaskCreated"):
    """A task is about to be added to the task list."""


class TaskCompleted(_TaskEvent, frozen=True, kw_only=True, tag="TaskCompleted"):
    """A task is about to be marked as completed."""


# Files and directories


class ConfigChange(HookEvent, frozen=True, kw_only=True, tag="ConfigChange"):
    """A settings file has changed."""

    MATCHED: ClassVar[str] = "source"

    source: str = ""
    file_path: str | None = None


class WorktreeCreate(HookEvent, frozen=True, kw_only=True, tag="WorktreeCreate"):
    """A worktree is needed: the callback creates it and replies with its path."""

    OUTPUT: ClassVar[type[Output] | None] = WorktreeCreateOutput

    name: str = ""


class WorktreeRemove(HookEvent, frozen=True, kw_only=True, tag="WorktreeRemove"):
    """A worktree that a callback created is to be removed."""

    worktree_path: str = ""


class InstructionsLoaded(HookEvent, frozen=True, kw_only=True, tag="InstructionsLoaded"):
    """A file of instructions was loaded, such as a `CLAUDE.md`."""

    MATCHED: ClassVar[str] = "load_reason"

    file_path: str = ""
    memory_type: str = ""
    load_reason: str = ""
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChanged(HookEvent, frozen=True, kw_only=True, tag="CwdChanged"):
    """The working directory has changed. CLI 2.1.325 was not observed to call hooks for it."""

    OUTPUT: ClassVar[type[Output] | None] = CwdChangedOutput

    old_cwd: str = ""
    new_cwd: str = ""


class FileChanged(HookEvent, frozen=True, kw_only=True, tag="FileChanged"):
    """A watched file has changed. Replies name the files to watch, in `watch_paths`."""

    OUTPUT: ClassVar[type[Output] | None] = FileChangedOutput
    MATCHED: ClassVar[str] = "file_name"

    file_path: str = ""
    event: str = ""

    @property
    def file_name(self) -> str:
        """The last part of the path."""
        return self.file_path.replace("\\", "/").rpartition("/")[2]


class DirectoryAdded(HookEvent, frozen=True, kw_only=True, tag="DirectoryAdded"):
    """Another working directory was added."""

    MATCHED: ClassVar[str] = "source"

    directory: str = ""
    source: str = ""
