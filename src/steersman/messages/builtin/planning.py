"""Tools for plans, task lists, worktrees, goals and reviews."""

from __future__ import annotations

from msgspec import field

from steersman._json import JsonDict
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "AllowedPrompt",
    "EnterPlanModeInput",
    "EnterPlanModeOutput",
    "EnterWorktreeInput",
    "EnterWorktreeOutput",
    "ExitPlanModeInput",
    "ExitPlanModeOutput",
    "ExitWorktreeInput",
    "ExitWorktreeOutput",
    "Finding",
    "ProposeGoalInput",
    "ProposeGoalOutput",
    "ReportFindingsInput",
    "ReportFindingsOutput",
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


class EnterPlanModeInput(ToolInput, frozen=True, kw_only=True):
    """`EnterPlanMode`: switch to plan mode, in which nothing is changed."""


class EnterPlanModeOutput(ToolOutput, frozen=True, kw_only=True):
    """The text that the model gets."""

    message: str | None = None


class AllowedPrompt(Part, frozen=True, kw_only=True):
    """A permission that a plan needs, in natural language."""

    tool: str = ""
    prompt: str = ""


class ExitPlanModeInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`ExitPlanMode`: request approval of the plan, which is in a file or in `raw`."""

    allowed_prompts: list[AllowedPrompt] | None = None


class ExitPlanModeOutput(ToolOutput, frozen=True, kw_only=True):
    """The plan, and who must approve it."""

    plan: str | None = None
    is_agent: bool | None = None
    file_path: str | None = None
    has_task_tool: bool | None = None
    plan_was_edited: bool | None = None
    awaiting_leader_approval: bool | None = None
    request_id: str | None = None


class EnterWorktreeInput(ToolInput, frozen=True, kw_only=True):
    """`EnterWorktree`: work in a git worktree."""

    name: str | None = None
    path: str | None = None


class EnterWorktreeOutput(ToolOutput, frozen=True, kw_only=True):
    """Where the worktree is."""

    worktree_path: str | None = None
    worktree_branch: str | None = None
    message: str | None = None


class ExitWorktreeInput(ToolInput, frozen=True, kw_only=True):
    """`ExitWorktree`: leave the worktree, and keep or remove it."""

    action: str = ""
    discard_changes: bool | None = None


class ExitWorktreeOutput(ToolOutput, frozen=True, kw_only=True):
    """The worktree, and whether it was kept or removed."""

    action: str | None = None
    original_cwd: str | None = None
    worktree_path: str | None = None
    worktree_branch: str | None = None
    tmux_session_name: str | None = None
    discarded_files: int | None = None
    discarded_commits: int | None = None
    message: str | None = None


class ProposeGoalInput(ToolInput, frozen=True, kw_only=True):
    """`ProposeGoal`: propose the condition under which the work is done."""

    condition: str = ""
    ask_user: bool | None = None


class ProposeGoalOutput(ToolOutput, frozen=True, kw_only=True):
    """The proposed goal."""

    condition: str | None = None
    ask_user: bool | None = None


class Finding(Part, frozen=True, kw_only=True):
    """One finding of a review."""

    file: str = ""
    summary: str = ""
    failure_scenario: str = ""
    line: int | None = None
    short_summary: str | None = None
    category: str | None = None
    verdict: str | None = None
    outcome: str | None = None


class ReportFindingsInput(ToolInput, frozen=True, kw_only=True):
    """`ReportFindings`: report the findings of a review."""

    findings: list[Finding] = []
    level: str | None = None


class ReportFindingsOutput(ToolOutput, frozen=True, kw_only=True):
    """The reported findings."""

    count: int | None = None
    level: str | None = None
    findings: list[Finding] | None = None


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
