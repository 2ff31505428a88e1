"""Tools that change how the work is done: plans, worktrees, goals, reviews."""

from __future__ import annotations

from typing import ClassVar

from steersman._struct import Readers, many
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
]


class EnterPlanModeInput(ToolInput, frozen=True, kw_only=True):
    """`EnterPlanMode`: only look and plan from here on."""


class EnterPlanModeOutput(ToolOutput, frozen=True, kw_only=True):
    """What the model is told of it."""

    message: str | None = None


class AllowedPrompt(Part, frozen=True, kw_only=True):
    """Something that a plan needs to be allowed, in words."""

    tool: str = ""
    prompt: str = ""


class ExitPlanModeInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`ExitPlanMode`: ask to begin. The plan itself stands in a file, or in `raw`."""

    READERS: ClassVar[Readers] = {"allowed_prompts": many(AllowedPrompt)}

    allowed_prompts: list[AllowedPrompt] | None = None


class ExitPlanModeOutput(ToolOutput, frozen=True, kw_only=True):
    """The plan, and who has to agree."""

    plan: str | None = None
    is_agent: bool | None = None
    file_path: str | None = None
    has_task_tool: bool | None = None
    plan_was_edited: bool | None = None
    awaiting_leader_approval: bool | None = None
    request_id: str | None = None


class EnterWorktreeInput(ToolInput, frozen=True, kw_only=True):
    """`EnterWorktree`: work in a copy of the repository."""

    name: str | None = None
    path: str | None = None


class EnterWorktreeOutput(ToolOutput, frozen=True, kw_only=True):
    """Where the copy is."""

    worktree_path: str | None = None
    worktree_branch: str | None = None
    message: str | None = None


class ExitWorktreeInput(ToolInput, frozen=True, kw_only=True):
    """`ExitWorktree`: leave the copy, and keep or remove it."""

    action: str = ""
    discard_changes: bool | None = None


class ExitWorktreeOutput(ToolOutput, frozen=True, kw_only=True):
    """What became of the copy."""

    action: str | None = None
    original_cwd: str | None = None
    worktree_path: str | None = None
    worktree_branch: str | None = None
    tmux_session_name: str | None = None
    discarded_files: int | None = None
    discarded_commits: int | None = None
    message: str | None = None


class ProposeGoalInput(ToolInput, frozen=True, kw_only=True):
    """`ProposeGoal`: say when the work would be done."""

    condition: str = ""
    ask_user: bool | None = None


class ProposeGoalOutput(ToolOutput, frozen=True, kw_only=True):
    """The goal that was put."""

    condition: str | None = None
    ask_user: bool | None = None


class Finding(Part, frozen=True, kw_only=True):
    """Something that a review found."""

    file: str = ""
    summary: str = ""
    failure_scenario: str = ""
    line: int | None = None
    short_summary: str | None = None
    category: str | None = None
    verdict: str | None = None
    outcome: str | None = None


class ReportFindingsInput(ToolInput, frozen=True, kw_only=True):
    """`ReportFindings`: give what a review found."""

    READERS: ClassVar[Readers] = {"findings": many(Finding)}

    findings: list[Finding] = []
    level: str | None = None


class ReportFindingsOutput(ToolOutput, frozen=True, kw_only=True):
    """What was reported."""

    READERS: ClassVar[Readers] = {"findings": many(Finding)}

    count: int | None = None
    level: str | None = None
    findings: list[Finding] | None = None
