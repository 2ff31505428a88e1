"""System messages about subagents and background work."""

from __future__ import annotations

from typing import Any

from steersman.messages.system import SystemWire

__all__ = [
    "BackgroundTasksChanged",
    "TaskMessage",
    "TaskNotification",
    "TaskProgress",
    "TaskStarted",
    "TaskUpdated",
]


class TaskStarted(SystemWire, frozen=True, kw_only=True, tag="task_started"):
    """A subagent or a shell began."""

    task_id: str = ""
    tool_use_id: str = ""
    task_type: str = ""
    description: str = ""
    is_backgrounded: bool | None = None


class TaskProgress(SystemWire, frozen=True, kw_only=True, tag="task_progress"):
    """A subagent did something."""

    task_id: str = ""
    tool_use_id: str = ""
    description: str = ""


class TaskUpdated(SystemWire, frozen=True, kw_only=True, tag="task_updated"):
    """A task changed its status."""

    task_id: str = ""
    patch: dict[str, Any] = {}


class TaskNotification(SystemWire, frozen=True, kw_only=True, tag="task_notification"):
    """A task ended; a turn nobody asked for may follow."""

    task_id: str = ""
    tool_use_id: str = ""
    status: str = ""
    summary: str = ""


class BackgroundTasksChanged(SystemWire, frozen=True, kw_only=True, tag="background_tasks_changed"):
    """All tasks that run in the background now."""

    tasks: list[dict[str, Any]] = []


TaskMessage = TaskStarted | TaskProgress | TaskUpdated | TaskNotification | BackgroundTasksChanged
