"""System messages about subagents and background work."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman._struct import Readers, WireStruct, many, one
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
    """What a task took so far."""

    total_tokens: int = 0
    tool_uses: int = 0
    duration_ms: float = 0


class McpResourceLink(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """Where a tool server keeps something that a task made."""

    uri: str = ""
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: float | None = None
    annotations: dict[str, Any] | None = None


class TaskStarted(SystemWire, frozen=True, kw_only=True, tag="task_started"):
    """A subagent or a shell began."""

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
    """A subagent did something."""

    READERS: ClassVar[Readers] = {"usage": one(TaskUsage)}

    task_id: str = ""
    run_id: str | None = None
    tool_use_id: str = ""
    description: str = ""
    subagent_type: str | None = None
    usage: TaskUsage | None = None
    last_tool_name: str | None = None
    summary: str | None = None


class TaskUpdated(SystemWire, frozen=True, kw_only=True, tag="task_updated"):
    """A task changed its status; of a killed one this may be the last word."""

    task_id: str = ""
    run_id: str | None = None
    patch: dict[str, Any] = {}


class TaskNotification(SystemWire, frozen=True, kw_only=True, tag="task_notification"):
    """A task ended; a turn nobody asked for may follow."""

    READERS: ClassVar[Readers] = {
        "usage": one(TaskUsage),
        "resource_links": many(McpResourceLink),
    }

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
    """All tasks that run in the background now."""

    tasks: list[dict[str, Any]] = []


TaskMessage = TaskStarted | TaskProgress | TaskUpdated | TaskNotification | BackgroundTasksChanged
