"""Tools that start or address agents: subagents, other agents, skills, workflows."""

from __future__ import annotations

from msgspec import field

from steersman._json import Json, JsonDict
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
    """The result of a subagent. If `status` is `async_launched`, where to follow its progress."""

    status: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    prompt: str | None = None
    description: str | None = None
    content: list[JsonDict] | None = None
    resolved_model: str | None = None
    models_used: Json = None
    total_tool_use_count: int | None = None
    total_duration_ms: float | None = None
    total_tokens: int | None = None
    usage: Usage | None = None
    tools_used: list[str] | None = None
    tool_stats: JsonDict | None = None
    is_async: bool | None = None
    output_file: str | None = None
    can_read_output_file: bool | None = None
    task_id: str | None = None
    session_url: str | None = None
    worktree_path: str | None = None
    worktree_branch: str | None = None


class ListAgentsInput(ToolInput, frozen=True, kw_only=True):
    """`ListAgents`: list the other agents."""

    channel: str | None = None
    q: str | None = None


class ListAgentsOutput(ToolOutput, frozen=True, kw_only=True):
    """The other agents, as a text in `listing` and as data in `sections`."""

    listing: str | None = None
    sections: list[Json] | None = None
    notes: list[Json] | None = None


class SendMessageInput(ToolInput, frozen=True, kw_only=True):
    """`SendMessage`: send a message to another agent."""

    to: str = ""
    message: str = ""
    summary: str | None = None
    notify_when_idle: bool | None = None


class SubagentHandbackInput(ToolInput, frozen=True, kw_only=True):
    """`SubagentHandback`: a subagent returns. Its fields are not declared; `raw` has them."""


class SkillInput(ToolInput, frozen=True, kw_only=True):
    """`Skill`: use a skill."""

    skill: str = ""
    args: str | None = None


class SkillOutput(ToolOutput, frozen=True, kw_only=True):
    """Whether the skill was found."""

    success: bool | None = None
    command_name: str | None = None


class WorkflowInput(ToolInput, frozen=True, kw_only=True):
    """`Workflow`: run a script that drives several agents."""

    script: str | None = None
    name: str | None = None
    description: str | None = None
    title: str | None = None
    args: Json = None
    script_path: str | None = field(default=None, name="scriptPath")
    resume_from_run_id: str | None = field(default=None, name="resumeFromRunId")


class WorkflowOutput(ToolOutput, frozen=True, kw_only=True):
    """The workflow run that was started."""

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
