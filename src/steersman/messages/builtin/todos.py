"""Tools that keep the model's task list."""

from __future__ import annotations

from msgspec import field

from steersman._json import JsonDict
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "StatusChange",
    "TaskCreateInput",
    "TaskCreateOutput",
    "TaskGetInput",
    "TaskGetOutput",
    "TaskItem",
    "TaskListInput",
    "TaskListOutput",
    "TaskUpdateInput",
    "TaskUpdateOutput",
    "Todo",
    "TodoWriteInput",
    "TodoWriteOutput",
]


class TaskItem(Part, frozen=True, kw_only=True, rename="camel"):
    """A task of the list."""

    id: str = ""
    subject: str = ""
    description: str | None = None
    status: str | None = None
    owner: str | None = None
    blocks: list[str] | None = None
    blocked_by: list[str] | None = None


class TaskCreateInput(ToolInput, frozen=True, kw_only=True):
    """`TaskCreate`: add a task."""

    subject: str = ""
    description: str = ""
    active_form: str | None = field(default=None, name="activeForm")
    metadata: JsonDict | None = None


class TaskCreateOutput(ToolOutput, frozen=True, kw_only=True):
    """The new task."""

    task: TaskItem | None = None


class TaskGetInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`TaskGet`: read a task."""

    task_id: str = ""


class TaskGetOutput(ToolOutput, frozen=True, kw_only=True):
    """The task, or None if there is no such task."""

    task: TaskItem | None = None


class TaskUpdateInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`TaskUpdate`: change a task. The status `deleted` removes it."""

    task_id: str = ""
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: str | None = None
    add_blocks: list[str] | None = None
    add_blocked_by: list[str] | None = None
    owner: str | None = None
    metadata: JsonDict | None = None


class StatusChange(Part, frozen=True, kw_only=True):
    """The status of a task before and after an update."""

    from_: str = field(default="", name="from")
    to: str = ""


class TaskUpdateOutput(ToolOutput, frozen=True, kw_only=True):
    """The fields that were changed."""

    success: bool | None = None
    task_id: str | None = None
    updated_fields: list[str] | None = None
    error: str | None = None
    status_change: StatusChange | None = None


class TaskListInput(ToolInput, frozen=True, kw_only=True):
    """`TaskList`: read the whole list."""


class TaskListOutput(ToolOutput, frozen=True, kw_only=True):
    """The whole list."""

    tasks: list[TaskItem] | None = None


class Todo(Part, frozen=True, kw_only=True, rename="camel"):
    """An entry of the older list, which is always written as a whole."""

    content: str = ""
    status: str = ""
    active_form: str = ""


class TodoWriteInput(ToolInput, frozen=True, kw_only=True):
    """`TodoWrite`: write the whole list, in CLIs without `TaskCreate`."""

    todos: list[Todo] = []


class TodoWriteOutput(ToolOutput, frozen=True, kw_only=True):
    """The list before and after."""

    old_todos: list[Todo] | None = None
    new_todos: list[Todo] | None = None
