"""System messages: the start, background tasks, hook events, errors of a session store."""

from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict

from steersman.compat._shapes.permissions import PermissionMode
from steersman.compat._shapes.raw import SLOTS
from steersman.compat._shapes.stored_sessions import SessionKey
from steersman.compat._shapes.usage import TaskUsage

__all__ = [
    "TERMINAL_TASK_STATUSES",
    "FastModeDisabledReason",
    "FastModeState",
    "HookEventMessage",
    "MirrorErrorMessage",
    "SystemInitData",
    "SystemInitMcpServer",
    "SystemInitPlugin",
    "SystemInitPluginError",
    "SystemMessage",
    "TaskNotificationMessage",
    "TaskNotificationStatus",
    "TaskProgressMessage",
    "TaskStartedMessage",
    "TaskUpdatedMessage",
    "TaskUpdatedStatus",
]


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
