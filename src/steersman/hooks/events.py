"""Hook events: one class per moment at which the CLI calls hooks.

To add an event, write its class and name it in `__all__`. Its name is the CLI's name for it.
"""

from __future__ import annotations

from typing import ClassVar

from steersman._json import Json, JsonDict
from steersman._values import Wire
from steersman.hooks.outputs import (
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


class HookEvent(Wire, frozen=True, kw_only=True, tag_field="hook_event_name"):
    """What every hook is told; `raw` has the fields that a class does not name."""

    OUTPUT: ClassVar[type[Output] | None] = None
    """What a reply may say about this event beside the common fields."""
    MATCHED: ClassVar[str] = ""
    """The field that matchers are held against; the CLI looks at none if it is empty."""

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
        """What a matcher is held against."""
        return str(getattr(self, self.MATCHED)) if self.MATCHED else ""


# Tools


class _ToolEvent(HookEvent, frozen=True, kw_only=True):
    """What the events about one tool have in common."""

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
    """All tools that the model asked for at once are done."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolBatchOutput

    tool_calls: list[JsonDict] = []


class PermissionRequest(_ToolEvent, frozen=True, kw_only=True, tag="PermissionRequest"):
    """The CLI asks whether a tool may run: this hook and `can_use_tool`, at the same time."""

    OUTPUT: ClassVar[type[Output] | None] = PermissionRequestOutput

    permission_suggestions: list[JsonDict] = []
    mcp_server: JsonDict | None = None


class PermissionDenied(_ToolEvent, frozen=True, kw_only=True, tag="PermissionDenied"):
    """The mode `auto` has refused a tool."""

    OUTPUT: ClassVar[type[Output] | None] = PermissionDeniedOutput

    tool_use_id: str = ""
    reason: str = ""
    mcp_server: JsonDict | None = None


# Prompts, messages and elicitations


class UserPromptSubmit(HookEvent, frozen=True, kw_only=True, tag="UserPromptSubmit"):
    """A prompt is about to reach the model."""

    OUTPUT: ClassVar[type[Output] | None] = UserPromptSubmitOutput

    prompt: str = ""
    source: str = ""
    session_title: str | None = None


class UserPromptExpansion(HookEvent, frozen=True, kw_only=True, tag="UserPromptExpansion"):
    """A slash command, or a prompt of an MCP server, is about to become a prompt."""

    OUTPUT: ClassVar[type[Output] | None] = UserPromptExpansionOutput
    MATCHED: ClassVar[str] = "command_name"

    expansion_type: str = ""
    command_name: str = ""
    command_args: str = ""
    command_source: str | None = None
    prompt: str = ""


class MessageDisplay(HookEvent, frozen=True, kw_only=True, tag="MessageDisplay"):
    """A piece of the model's text is about to be shown."""

    OUTPUT: ClassVar[type[Output] | None] = MessageDisplayOutput

    turn_id: str = ""
    message_id: str = ""
    index: int = 0
    final: bool = False
    delta: str = ""


class Notification(HookEvent, frozen=True, kw_only=True, tag="Notification"):
    """The CLI tells the person something."""

    OUTPUT: ClassVar[type[Output] | None] = NotificationOutput
    MATCHED: ClassVar[str] = "notification_type"

    message: str = ""
    title: str | None = None
    notification_type: str = ""


class Elicitation(HookEvent, frozen=True, kw_only=True, tag="Elicitation"):
    """A tool server wants something of the person."""

    OUTPUT: ClassVar[type[Output] | None] = ElicitationOutput
    MATCHED: ClassVar[str] = "mcp_server_name"

    mcp_server_name: str = ""
    message: str = ""
    mode: str = ""
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: JsonDict | None = None


class ElicitationResult(HookEvent, frozen=True, kw_only=True, tag="ElicitationResult"):
    """The person has answered a tool server."""

    OUTPUT: ClassVar[type[Output] | None] = ElicitationResultOutput
    MATCHED: ClassVar[str] = "mcp_server_name"

    mcp_server_name: str = ""
    elicitation_id: str | None = None
    mode: str = ""
    action: str = ""
    content: JsonDict | None = None


# The session


class SessionStart(HookEvent, frozen=True, kw_only=True, tag="SessionStart"):
    """A session begins, or its context begins anew.

    The CLI tells of `clear` and `compact`; of `startup`, `resume` and `fork` the session itself.
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
    """A session ends. The CLI tells of `clear`; of its end, as `other`, the session itself."""

    MATCHED: ClassVar[str] = "reason"

    reason: str = ""


class Setup(HookEvent, frozen=True, kw_only=True, tag="Setup"):
    """A repository is set up. The CLI runs this before callbacks can be registered."""

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
    """The turn has ended with an error of the API."""

    MATCHED: ClassVar[str] = "error"

    error: str = ""
    error_details: Json = None
    last_assistant_message: str | None = None


class PreCompact(HookEvent, frozen=True, kw_only=True, tag="PreCompact"):
    """The conversation is about to be summed up."""

    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""
    custom_instructions: str | None = None


class PostCompact(HookEvent, frozen=True, kw_only=True, tag="PostCompact"):
    """The conversation has been summed up."""

    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""
    compact_summary: str = ""


class _ModelSwitch(HookEvent, frozen=True, kw_only=True):
    """What the events before and after a change of the model have in common."""

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
    """A subagent begins."""

    OUTPUT: ClassVar[type[Output] | None] = SubagentStartOutput
    MATCHED: ClassVar[str] = "agent_type"


class SubagentStop(HookEvent, frozen=True, kw_only=True, tag="SubagentStop"):
    """A subagent is about to end; the one that sums up a conversation has no type."""

    OUTPUT: ClassVar[type[Output] | None] = SubagentStopOutput
    MATCHED: ClassVar[str] = "agent_type"

    stop_hook_active: bool = False
    agent_transcript_path: str = ""
    last_assistant_message: str | None = None
    background_tasks: list[JsonDict] = []
    session_crons: list[JsonDict] = []


class TeammateIdle(HookEvent, frozen=True, kw_only=True, tag="TeammateIdle"):
    """A teammate has nothing to do. CLI 2.1.325 was not seen to call back for it."""

    teammate_name: str = ""
    team_name: str = ""


class _TaskEvent(HookEvent, frozen=True, kw_only=True):
    """What the events about one task of the task list have in common."""

    task_id: str = ""
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreated(_TaskEvent, frozen=True, kw_only=True, tag="TaskCreated"):
    """A task is about to be put on the list."""


class TaskCompleted(_TaskEvent, frozen=True, kw_only=True, tag="TaskCompleted"):
    """A task is about to be marked as done."""


# Files and directories


class ConfigChange(HookEvent, frozen=True, kw_only=True, tag="ConfigChange"):
    """A settings file has changed."""

    MATCHED: ClassVar[str] = "source"

    source: str = ""
    file_path: str | None = None


class WorktreeCreate(HookEvent, frozen=True, kw_only=True, tag="WorktreeCreate"):
    """A worktree is wanted: the callback makes it and answers with its path."""

    OUTPUT: ClassVar[type[Output] | None] = WorktreeCreateOutput

    name: str = ""


class WorktreeRemove(HookEvent, frozen=True, kw_only=True, tag="WorktreeRemove"):
    """A worktree that a callback made is to go."""

    worktree_path: str = ""


class InstructionsLoaded(HookEvent, frozen=True, kw_only=True, tag="InstructionsLoaded"):
    """A file of instructions was read, such as a `CLAUDE.md`."""

    MATCHED: ClassVar[str] = "load_reason"

    file_path: str = ""
    memory_type: str = ""
    load_reason: str = ""
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChanged(HookEvent, frozen=True, kw_only=True, tag="CwdChanged"):
    """The working directory has changed. CLI 2.1.325 was not seen to call back for it."""

    OUTPUT: ClassVar[type[Output] | None] = CwdChangedOutput

    old_cwd: str = ""
    new_cwd: str = ""


class FileChanged(HookEvent, frozen=True, kw_only=True, tag="FileChanged"):
    """A watched file has changed; replies name the files to watch, by `watch_paths`."""

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
