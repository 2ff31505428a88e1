"""Verbs about work in the background."""

from __future__ import annotations

from msgspec import field

from steersman.control.verbs import Answer, Text, Verb

__all__ = ["BackgroundTasks", "Backgrounded", "GetTaskOutput", "StopTask", "TaskOutput"]


class StopTask(Verb[Answer], frozen=True, kw_only=True, tag="stop_task"):
    """Stop a background task; a wrong id succeeds too."""

    task_id: Text


class Backgrounded(Answer, frozen=True, kw_only=True):
    """Whether something was sent to the background."""

    backgrounded: bool | None = None
    """Told only when a `tool_use_id` was given."""


class BackgroundTasks(Verb[Backgrounded], frozen=True, kw_only=True, tag="background_tasks"):
    """Send what runs in the foreground to the background: all of it, or one tool call.

    A shell can be reached only some seconds after its start.
    """

    tool_use_id: Text | None = None


class TaskOutput(Answer, frozen=True, kw_only=True):
    """The end of what a background shell has written."""

    output: str = ""
    total_bytes: int = field(default=0, name="total_bytes")
    truncated: bool = False


class GetTaskOutput(Verb[TaskOutput], frozen=True, kw_only=True, tag="get_task_output"):
    """Read what a background shell has written; refused for subagents."""

    task_id: Text
