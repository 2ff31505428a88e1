"""Tools that let work begin later, or elsewhere."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman._struct import Readers, many
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
    """`CronCreate`: say a prompt at certain times."""

    cron: str = ""
    prompt: str = ""
    recurring: bool | None = None
    durable: bool | None = None


class CronCreateOutput(ToolOutput, frozen=True, kw_only=True):
    """The job, and when it runs."""

    id: str | None = None
    human_schedule: str | None = None
    recurring: bool | None = None
    durable: bool | None = None
    next_fire_at: float | None = None
    """Milliseconds since 1970."""


class CronDeleteInput(ToolInput, frozen=True, kw_only=True):
    """`CronDelete`: end a job."""

    id: str = ""


class CronDeleteOutput(ToolOutput, frozen=True, kw_only=True):
    """The job that was ended."""

    id: str | None = None
    ended_loop_wakeup: bool | None = None


class CronListInput(ToolInput, frozen=True, kw_only=True):
    """`CronList`: look at all jobs."""


class CronJob(Part, frozen=True, kw_only=True, rename="camel"):
    """A prompt and its times."""

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

    READERS: ClassVar[Readers] = {"jobs": many(CronJob)}

    jobs: list[CronJob] | None = None


class ScheduleWakeupInput(ToolInput, frozen=True, kw_only=True, rename="camel"):
    """`ScheduleWakeup`: go on after a while, or stop doing so."""

    delay_seconds: float | None = None
    reason: str | None = None
    prompt: str | None = None
    stop: bool | None = None
    noop: bool | None = None


class ScheduleWakeupOutput(ToolOutput, frozen=True, kw_only=True):
    """When it goes on."""

    scheduled_for: float | None = None
    """Milliseconds since 1970."""
    clamped_delay_seconds: float | None = None
    was_clamped: bool | None = None
    stopped: bool | None = None
    cancelled_wakeups: int | None = None


class RemoteTriggerInput(ToolInput, frozen=True, kw_only=True):
    """`RemoteTrigger`: see or start what runs elsewhere."""

    action: str = ""
    trigger_id: str | None = None
    session_id: str | None = None
    cursor: str | None = None
    body: Any = None


class RemoteTriggerOutput(ToolOutput, frozen=True, kw_only=True):
    """What the other side said."""

    status: int | None = None
    json: Any = None
    summary: str | None = None
