"""Tools that keep the model's own list of what is to be done."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, many, one
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
    """An entry of the list."""

    id: str = ""
    subject: str = ""
    description: str | None = None
    status: str | None = None
    owner: str | None = None
    blocks: list[str] | None = None
    blocked_by: list[str] | None = None


class TaskCreateInput(ToolInput, frozen=True, kw_only=True):
    """`TaskCreate`: add an entry."""

    subject: str = ""
    description: str = ""
    active_form: str | None = field(default=None, name="activeForm")
    metadata: dict[str, Any] | None = None


class TaskCreateOutput(ToolOutput, frozen=True, kw_only=True):
    """The new entry."""

    READERS: ClassVar[Readers] = {"task": one(TaskItem)}

    task: TaskItem | None = None


class TaskGetInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`TaskGet`: look at an entry."""

    task_id: str = ""


class TaskGetOutput(ToolOutput, frozen=True, kw_only=True):
    """The entry, or None."""

    READERS: ClassVar[Readers] = {"task": one(TaskItem)}

    task: TaskItem | None = None


class TaskUpdateInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`TaskUpdate`: change an entry, or with status `deleted` remove it."""

    task_id: str = ""
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: str | None = None
    add_blocks: list[str] | None = None
    add_blocked_by: list[str] | None = None
    owner: str | None = None
    metadata: dict[str, Any] | None = None


class StatusChange(Part, frozen=True, kw_only=True):
    """A status before and after."""

    from_: str = field(default="", name="from")
    to: str = ""


class TaskUpdateOutput(ToolOutput, frozen=True, kw_only=True):
    """What was changed."""

    READERS: ClassVar[Readers] = {"status_change": one(StatusChange)}

    success: bool | None = None
    task_id: str | None = None
    updated_fields: list[str] | None = None
    error: str | None = None
    status_change: StatusChange | None = None


class TaskListInput(ToolInput, frozen=True, kw_only=True):
    """`TaskList`: look at the whole list."""


class TaskListOutput(ToolOutput, frozen=True, kw_only=True):
    """The whole list."""

    READERS: ClassVar[Readers] = {"tasks": many(TaskItem)}

    tasks: list[TaskItem] | None = None


class Todo(Part, frozen=True, kw_only=True, rename="camel"):
    """An entry of the older list, which is always written whole."""

    content: str = ""
    status: str = ""
    active_form: str = ""


class TodoWriteInput(ToolInput, frozen=True, kw_only=True):
    """`TodoWrite`: put the whole list, in CLIs that have no `TaskCreate`."""

    READERS: ClassVar[Readers] = {"todos": many(Todo)}

    todos: list[Todo] = []


class TodoWriteOutput(ToolOutput, frozen=True, kw_only=True):
    """The list before and after."""

    READERS: ClassVar[Readers] = {"old_todos": many(Todo), "new_todos": many(Todo)}

    old_todos: list[Todo] | None = None
    new_todos: list[Todo] | None = None
