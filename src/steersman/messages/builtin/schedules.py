"""Tools that schedule prompts and trigger remote runs."""

from __future__ import annotations

from steersman._json import Json
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "CronCreateInput",
    "CronCreateOutput",
    "CronDeleteInput",
    "CronDeleteOutput",
    "CronJob",
    "CronListInput",
    "CronListOutput",
    "RemoteTriggerInput",
    "RemoteTriggerOutput",
    "ScheduleWakeupInput",
    "ScheduleWakeupOutput",
]


class CronCreateInput(ToolInput, frozen=True, kw_only=True):
    """`CronCreate`: schedule a prompt with a cron expression."""

    cron: str = ""
    prompt: str = ""
    recurring: bool | None = None
    durable: bool | None = None


class CronCreateOutput(ToolOutput, frozen=True, kw_only=True):
    """The new job, and when it runs next."""

    id: str | None = None
    human_schedule: str | None = None
    recurring: bool | None = None
    durable: bool | None = None
    next_fire_at: float | None = None
    """Milliseconds since 1970."""


class CronDeleteInput(ToolInput, frozen=True, kw_only=True):
    """`CronDelete`: delete a job."""

    id: str = ""


class CronDeleteOutput(ToolOutput, frozen=True, kw_only=True):
    """The deleted job."""

    id: str | None = None
    ended_loop_wakeup: bool | None = None


class CronListInput(ToolInput, frozen=True, kw_only=True):
    """`CronList`: list all jobs."""


class CronJob(Part, frozen=True, kw_only=True, rename="camel"):
    """A scheduled prompt."""

    id: str = ""
    cron: str | None = None
    human_schedule: str | None = None
    prompt: str | None = None
    recurring: bool | None = None
    durable: bool | None = None
    next_fire_at: float | None = None
    """Milliseconds since 1970."""


class CronListOutput(ToolOutput, frozen=True, kw_only=True):
    """All jobs."""

    jobs: list[CronJob] | None = None


class ScheduleWakeupInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`ScheduleWakeup`: continue after a delay, or cancel that."""

    delay_seconds: float | None = None
    reason: str | None = None
    prompt: str | None = None
    stop: bool | None = None
    noop: bool | None = None


class ScheduleWakeupOutput(ToolOutput, frozen=True, kw_only=True):
    """When the conversation continues."""

    scheduled_for: float | None = None
    """Milliseconds since 1970."""
    clamped_delay_seconds: float | None = None
    was_clamped: bool | None = None
    stopped: bool | None = None
    cancelled_wakeups: int | None = None


class RemoteTriggerInput(ToolInput, frozen=True, kw_only=True):
    """`RemoteTrigger`: list or start remote runs."""

    action: str = ""
    trigger_id: str | None = None
    session_id: str | None = None
    cursor: str | None = None
    body: Json = None


class RemoteTriggerOutput(ToolOutput, frozen=True, kw_only=True):
    """The answer of the remote service."""

    status: int | None = None
    json: Json = None
    summary: str | None = None
