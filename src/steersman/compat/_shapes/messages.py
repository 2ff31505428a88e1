"""Messages, their content blocks, and the system messages."""

from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, Required, TypeAlias, TypedDict

from steersman.compat._shapes.permissions import PermissionMode
from steersman.compat._shapes.stored_sessions import SessionKey
from steersman.compat._shapes.usage import ModelUsage, RateLimitInfo, TaskUsage

__all__ = [
    "TERMINAL_TASK_STATUSES",
    "AssistantMessage",
    "AssistantMessageError",
    "ContentBlock",
    "ConversationResetMessage",
    "DeferredToolUse",
    "FastModeDisabledReason",
    "FastModeState",
    "HookEventMessage",
    "Message",
    "MessageOrigin",
    "MessageOriginKind",
    "MirrorErrorMessage",
    "RateLimitEvent",
    "ResultMessage",
    "ServerToolName",
    "ServerToolResultBlock",
    "ServerToolUseBlock",
    "StreamEvent",
    "SystemInitData",
    "SystemInitMcpServer",
    "SystemInitPlugin",
    "SystemInitPluginError",
    "SystemMessage",
    "TaskNotificationMessage",
    "TaskNotificationOriginSubkind",
    "TaskNotificationStatus",
    "TaskProgressMessage",
    "TaskStartedMessage",
    "TaskUpdatedMessage",
    "TaskUpdatedStatus",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UserMessage",
]


# In a slot, and not in the message's `__dict__`: programs print and store `vars(message)`.
RAW: Final = "_raw"
"""Where a message keeps the JSON object that it was made from; one that a program made has none."""

SLOTS: Final = (RAW, "__dict__", "__weakref__")
"""The `__slots__` of a message, which has all its fields in its `__dict__` nevertheless."""


@dataclass
class TextBlock:
    """Text of the model, or of a prompt."""

    text: str


@dataclass
class ThinkingBlock:
    """What the model thought, with its signature."""

    thinking: str
    signature: str


@dataclass
class ToolUseBlock:
    """The model calls a tool."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ToolResultBlock:
    """The result of a tool call."""

    tool_use_id: str
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None


ServerToolName: TypeAlias = Literal[
    "advisor",
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
]
"""Tools that run at the API."""


@dataclass
class ServerToolUseBlock:
    """The model calls a tool that runs at the API."""

    id: str
    name: ServerToolName
    input: dict[str, Any]


@dataclass
class ServerToolResultBlock:
    """The result of a tool that ran at the API."""

    tool_use_id: str
    content: dict[str, Any]


ContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ServerToolUseBlock
    | ServerToolResultBlock
)
"""One block of a message's content."""


MessageOriginKind: TypeAlias = Literal[
    "human",
    "channel",
    "peer",
    "task-notification",
    "coordinator",
    "unclassified",
    "observer",
    "auto-continuation",
    "observer-activity",
]
"""Kinds of origins."""


TaskNotificationOriginSubkind: TypeAlias = Literal["scheduled-trigger", "peer-send-message"]
"""Kinds of prompts that a background task caused."""


# `from` is a word of Python's, so the keys are given as a dict.
MessageOrigin = TypedDict(
    "MessageOrigin",
    {
        "kind": Required[MessageOriginKind],
        "server": str,
        "from": str,
        "name": str,
        "fromSession": str,
        "senderTaskId": str,
        "body": str,
        "verifiedPeerPid": int,
        "subkind": TaskNotificationOriginSubkind,
    },
    total=False,
)
"""Where a prompt, and the result that answers it, came from."""


@dataclass
class SystemMessage:
    """A message of the CLI about itself; `data` is the whole of it."""

    __slots__ = SLOTS

    subtype: str
    data: dict[str, Any]


class SystemInitMcpServer(TypedDict):
    """An MCP server in the `init` message."""

    name: str
    status: str
    source: NotRequired[str]


class SystemInitPlugin(TypedDict):
    """A plugin in the `init` message."""

    name: str
    path: str
    version: NotRequired[str]


class SystemInitPluginError(TypedDict):
    """A plugin that could not be loaded."""

    plugin: str
    type: str
    message: str
    path: NotRequired[str]


FastModeState: TypeAlias = Literal["off", "cooldown", "on"]
"""Whether fast mode is on."""


FastModeDisabledReason: TypeAlias = Literal[
    "free",
    "preference",
    "extra_usage_disabled",
    "network_error",
    "unknown",
    "not_first_party",
    "disabled_by_env",
    "model_not_allowed",
    "sdk_opt_in_required",
    "pending",
]
"""Why fast mode is off."""


class SystemInitData(TypedDict):
    """The `data` of a `SystemMessage` of subtype `init`."""

    type: Literal["system"]
    subtype: Literal["init"]
    uuid: str
    session_id: str
    agents: NotRequired[list[str]]
    apiKeySource: str
    betas: NotRequired[list[str]]
    claude_code_version: str
    cwd: str
    tools: list[str]
    mcp_servers: list[SystemInitMcpServer]
    model: str
    permissionMode: PermissionMode
    slash_commands: list[str]
    terminal_slash_commands: NotRequired[list[str]]
    output_style: str
    skills: list[str]
    plugins: list[SystemInitPlugin]
    plugin_errors: NotRequired[list[SystemInitPluginError]]
    fast_mode_state: NotRequired[FastModeState]
    fast_mode_disabled_reason: NotRequired[FastModeDisabledReason]
    capabilities: NotRequired[list[str]]


TaskNotificationStatus: TypeAlias = Literal["completed", "failed", "stopped"]
"""How a background task ended."""


TaskUpdatedStatus: TypeAlias = Literal[
    "pending", "running", "paused", "completed", "failed", "killed"
]
"""Where a background task stands."""


TERMINAL_TASK_STATUSES: Final[frozenset[str]] = frozenset(
    {"completed", "failed", "stopped", "killed"}
)
"""The statuses after which a background task does nothing more."""


@dataclass
class TaskStartedMessage(SystemMessage):
    """A background task has started."""

    task_id: str
    description: str
    uuid: str
    session_id: str
    tool_use_id: str | None = None
    task_type: str | None = None


@dataclass
class TaskProgressMessage(SystemMessage):
    """What a background task has done so far."""

    task_id: str
    description: str
    usage: TaskUsage
    uuid: str
    session_id: str
    tool_use_id: str | None = None
    last_tool_name: str | None = None


@dataclass
class TaskNotificationMessage(SystemMessage):
    """A background task has ended."""

    task_id: str
    status: TaskNotificationStatus
    output_file: str
    summary: str
    uuid: str
    session_id: str
    tool_use_id: str | None = None
    usage: TaskUsage | None = None


@dataclass
class TaskUpdatedMessage(SystemMessage):
    """Fields of a background task have changed; `patch` has them."""

    task_id: str
    patch: dict[str, Any]
    status: TaskUpdatedStatus | None = None
    session_id: str | None = None
    uuid: str | None = None


@dataclass
class MirrorErrorMessage(SystemMessage):
    """Entries could not be written to the session store."""

    key: SessionKey | None = None
    error: str = ""


@dataclass
class HookEventMessage(SystemMessage):
    """A hook of the settings files runs, or has run."""

    hook_event_name: str = ""
    session_id: str | None = None
    uuid: str | None = None


AssistantMessageError: TypeAlias = Literal[
    "authentication_failed",
    "billing_error",
    "rate_limit",
    "invalid_request",
    "server_error",
    "unknown",
]
"""Why the API gave no answer."""


@dataclass
class UserMessage:
    """A prompt, or the results of tool calls."""

    __slots__ = SLOTS

    content: str | list[ContentBlock]
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: dict[str, Any] | None = None
    origin: MessageOrigin | None = None


@dataclass
class AssistantMessage:
    """A message of the model, or one block of it."""

    __slots__ = SLOTS

    content: list[ContentBlock]
    model: str
    parent_tool_use_id: str | None = None
    error: AssistantMessageError | None = None
    usage: dict[str, Any] | None = None
    message_id: str | None = None
    stop_reason: str | None = None
    session_id: str | None = None
    uuid: str | None = None


@dataclass
class DeferredToolUse:
    """A tool call that a hook has deferred; the turn ended there."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ResultMessage:
    """The end of a turn: its last text, its cost, its errors."""

    __slots__ = SLOTS

    subtype: str
    duration_ms: int
    duration_api_ms: int
    is_error: bool
    num_turns: int
    session_id: str
    stop_reason: str | None = None
    total_cost_usd: float | None = None
    usage: dict[str, Any] | None = None
    result: str | None = None
    structured_output: Any = None
    model_usage: dict[str, ModelUsage] | None = None
    permission_denials: list[Any] | None = None
    deferred_tool_use: DeferredToolUse | None = None
    errors: list[str] | None = None
    api_error_status: int | None = None
    uuid: str | None = None
    terminal_reason: str | None = None
    origin: MessageOrigin | None = None


@dataclass
class StreamEvent:
    """A part of a message that is being written; `event` is the API's own."""

    __slots__ = SLOTS

    uuid: str
    session_id: str
    event: dict[str, Any]
    parent_tool_use_id: str | None = None


@dataclass
class RateLimitEvent:
    """The CLI reports a usage limit."""

    __slots__ = SLOTS

    rate_limit_info: RateLimitInfo
    uuid: str
    session_id: str


@dataclass
class ConversationResetMessage:
    """The conversation was cleared and continues under another id."""

    __slots__ = SLOTS

    new_conversation_id: str
    uuid: str
    session_id: str


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | SystemMessage
    | ResultMessage
    | StreamEvent
    | RateLimitEvent
    | ConversationResetMessage
)
"""What a client's iterators give."""
