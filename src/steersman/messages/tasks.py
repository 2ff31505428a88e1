"""System messages about subagents and background work."""

from __future__ import annotations

from steersman._json import JsonDict
from steersman._struct import WireStruct
from steersman.messages.system import SystemWire

__all__ = [
    "BackgroundTasksChanged",
    "McpResourceLink",
    "TaskMessage",
    "TaskNotification",
    "TaskProgress",
    "TaskStarted",
    "TaskUpdated",
    "TaskUsage",
]


class TaskUsage(WireStruct, frozen=True, kw_only=True):
    """What a task has used so far."""

    total_tokens: int = 0
    tool_uses: int = 0
    duration_ms: float = 0


class McpResourceLink(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """A link to a resource of an MCP server that a task made."""

    uri: str = ""
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: float | None = None
    annotations: JsonDict | None = None


class TaskStarted(SystemWire, frozen=True, kw_only=True, tag="task_started"):
    """A subagent or a shell started."""

    task_id: str = ""
    run_id: str | None = None
    tool_use_id: str = ""
    task_type: str = ""
    description: str = ""
    subagent_type: str | None = None
    is_backgrounded: bool | None = None
    spawn_depth: int | None = None
    parent_task_id: str | None = None
    workflow_name: str | None = None
    prompt: str | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None


class TaskProgress(SystemWire, frozen=True, kw_only=True, tag="task_progress"):
    """A subagent made progress."""

    task_id: str = ""
    run_id: str | None = None
    tool_use_id: str = ""
    description: str = ""
    subagent_type: str | None = None
    usage: TaskUsage | None = None
    last_tool_name: str | None = None
    summary: str | None = None


class TaskUpdated(SystemWire, frozen=True, kw_only=True, tag="task_updated"):
    """The status of a task changed. For a killed task this may be the last message."""

    task_id: str = ""
    run_id: str | None = None
    patch: JsonDict = {}


class TaskNotification(SystemWire, frozen=True, kw_only=True, tag="task_notification"):
    """A task ended. The CLI may start a turn of its own after it."""

    task_id: str = ""
    run_id: str | None = None
    tool_use_id: str = ""
    status: str = ""
    reason: str | None = None
    output_file: str = ""
    summary: str = ""
    usage: TaskUsage | None = None
    resource_links: list[McpResourceLink] = []
    skip_transcript: bool | None = None
    ambient: bool | None = None


class BackgroundTasksChanged(SystemWire, frozen=True, kw_only=True, tag="background_tasks_changed"):
    """The background tasks changed; `tasks` has all that run."""

    tasks: list[JsonDict] = []


TaskMessage = TaskStarted | TaskProgress | TaskUpdated | TaskNotification | BackgroundTasksChanged
