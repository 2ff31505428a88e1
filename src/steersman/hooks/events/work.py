"""Work that is handed on: subagents, teammates, tasks."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.hooks.events.event import HookEvent
from steersman.hooks.outputs import Output, SubagentStartOutput, SubagentStopOutput

__all__ = ["SubagentStart", "SubagentStop", "TaskCompleted", "TaskCreated", "TeammateIdle"]


class SubagentStart(HookEvent, frozen=True, kw_only=True, tag="SubagentStart"):
    """A subagent begins."""

    OUTPUT: ClassVar[type[Output] | None] = SubagentStartOutput
    MATCHED: ClassVar[str] = "agent_type"


class SubagentStop(HookEvent, frozen=True, kw_only=True, tag="SubagentStop"):
    """A subagent is about to end; the one that sums up a conversation has no type."""

    OUTPUT: ClassVar[type[Output] | None] = SubagentStopOutput
    MATCHED: ClassVar[str] = "agent_type"

    stop_hook_active: bool = False
    agent_transcript_path: str = ""
    last_assistant_message: str | None = None
    background_tasks: list[dict[str, Any]] = []
    session_crons: list[dict[str, Any]] = []


class TeammateIdle(HookEvent, frozen=True, kw_only=True, tag="TeammateIdle"):
    """A teammate has nothing to do. CLI 2.1.325 was not seen to call back for it."""

    teammate_name: str = ""
    team_name: str = ""


class TaskCreated(HookEvent, frozen=True, kw_only=True, tag="TaskCreated"):
    """A task is about to be put on the list."""

    task_id: str = ""
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCompleted(HookEvent, frozen=True, kw_only=True, tag="TaskCompleted"):
    """A task is about to be marked as done."""

    task_id: str = ""
    task_subject: str = ""
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None
