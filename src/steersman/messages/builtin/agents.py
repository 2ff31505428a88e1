"""Tools that put others to work: subagents, peers, skills, workflows."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, one
from steersman.messages.builtin.base import ToolInput, ToolOutput
from steersman.messages.usage import Usage

__all__ = [
    "AgentInput",
    "AgentOutput",
    "ListAgentsInput",
    "ListAgentsOutput",
    "SendMessageInput",
    "SkillInput",
    "SkillOutput",
    "SubagentHandbackInput",
    "WorkflowInput",
    "WorkflowOutput",
]


class AgentInput(ToolInput, frozen=True, kw_only=True):
    """`Agent`: give a task to a subagent."""

    description: str = ""
    prompt: str = ""
    subagent_type: str | None = None
    model: str | None = None
    effort: str | None = None
    run_in_background: bool | None = None
    name: str | None = None
    team_name: str | None = None
    mode: str | None = None
    isolation: str | None = None


class AgentOutput(ToolOutput, frozen=True, kw_only=True):
    """What a subagent did, or, with `status` `async_launched`, where it can be followed."""

    READERS: ClassVar[Readers] = {"usage": one(Usage)}

    status: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    prompt: str | None = None
    description: str | None = None
    content: list[dict[str, Any]] | None = None
    resolved_model: str | None = None
    models_used: Any = None
    total_tool_use_count: int | None = None
    total_duration_ms: float | None = None
    total_tokens: int | None = None
    usage: Usage | None = None
    tools_used: list[str] | None = None
    tool_stats: dict[str, Any] | None = None
    is_async: bool | None = None
    output_file: str | None = None
    can_read_output_file: bool | None = None
    task_id: str | None = None
    session_url: str | None = None
    worktree_path: str | None = None
    worktree_branch: str | None = None


class ListAgentsInput(ToolInput, frozen=True, kw_only=True):
    """`ListAgents`: see who else is there."""

    channel: str | None = None
    q: str | None = None


class ListAgentsOutput(ToolOutput, frozen=True, kw_only=True):
    """Who is there, in words; `sections` has the same in pieces."""

    listing: str | None = None
    sections: list[Any] | None = None
    notes: list[Any] | None = None


class SendMessageInput(ToolInput, frozen=True, kw_only=True):
    """`SendMessage`: write to another agent."""

    to: str = ""
    message: str = ""
    summary: str | None = None
    notify_when_idle: bool | None = None


class SubagentHandbackInput(ToolInput, frozen=True, kw_only=True):
    """`SubagentHandback`: a subagent returns. Known by name only; `raw` has what it gave."""


class SkillInput(ToolInput, frozen=True, kw_only=True):
    """`Skill`: follow a skill."""

    skill: str = ""
    args: str | None = None


class SkillOutput(ToolOutput, frozen=True, kw_only=True):
    """Whether there is such a skill."""

    success: bool | None = None
    command_name: str | None = None


class WorkflowInput(ToolInput, frozen=True, kw_only=True):
    """`Workflow`: run a script that leads many agents."""

    script: str | None = None
    name: str | None = None
    description: str | None = None
    title: str | None = None
    args: Any = None
    script_path: str | None = field(default=None, name="scriptPath")
    resume_from_run_id: str | None = field(default=None, name="resumeFromRunId")


class WorkflowOutput(ToolOutput, frozen=True, kw_only=True):
    """The run that was started."""

    status: str | None = None
    task_id: str | None = None
    task_type: str | None = None
    workflow_name: str | None = None
    run_id: str | None = None
    summary: str | None = None
    transcript_dir: str | None = None
    script_path: str | None = None
    session_url: str | None = None
    warning: str | None = None
    error: str | None = None
