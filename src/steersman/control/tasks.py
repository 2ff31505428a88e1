"""Verbs about background tasks."""

from __future__ import annotations

from msgspec import field

from steersman.control.verbs import Answer, Text, Verb

__all__ = ["BackgroundTasks", "Backgrounded", "GetTaskOutput", "StopTask", "TaskOutput"]


class StopTask(Verb[Answer], frozen=True, kw_only=True, tag="stop_task"):
    """Stop a background task. A wrong id succeeds too."""

    task_id: Text


class Backgrounded(Answer, frozen=True, kw_only=True):
    """Whether something was moved to the background."""

    backgrounded: bool | None = None
    """Set only if a `tool_use_id` was given."""


class BackgroundTasks(Verb[Backgrounded], frozen=True, kw_only=True, tag="background_tasks"):
    """Move foreground work to the background: all of it, or one tool call.

    A shell can be moved only some seconds after its start.
    """

    tool_use_id: Text | None = None


class TaskOutput(Answer, frozen=True, kw_only=True):
    """The end of the output of a background shell."""

    output: str = ""
    total_bytes: int = field(default=0, name="total_bytes")
    truncated: bool = False


class GetTaskOutput(Verb[TaskOutput], frozen=True, kw_only=True, tag="get_task_output"):
    """Read the output of a background shell. Refused for subagents."""

    task_id: Text
