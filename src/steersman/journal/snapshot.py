"""Where a session stands at one moment, as plain values, and the same in one line for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from steersman._json import JsonDict, JsonObject
from steersman.journal.phases import Phase
from steersman.journal.tasks import Task

__all__ = [
    "PendingPermission",
    "PendingToolCall",
    "Retrying",
    "SessionSnapshot",
    "State",
    "StateChanged",
    "Stats",
    "describe",
]

State = Literal[
    "idle",
    "starting",
    "running",
    "waiting_tool_call",
    "waiting_permission",
    "paused",
    "completed",
    "failed",
    "cancelled",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingToolCall:
    """A tool that runs now."""

    tool_use_id: str
    """Empty where the CLI does not tell whose call it is."""
    name: str
    server: str | None = None
    """The tool server that it belongs to; `None` for the CLI's own tools."""
    arguments: JsonObject = field(default_factory=JsonDict)
    started: float = 0.0
    """Seconds since the epoch, as everywhere here."""
    is_ours: bool = False
    """Whether it runs in this process: the session waits for it, not for the CLI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPermission:
    """A question that waits for a decision."""

    request_id: str
    tool_name: str = ""
    input: JsonObject = field(default_factory=JsonDict)
    since: float = 0.0
    agent_id: str | None = None
    """The subagent that wants it; `None` for the main one."""
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """The API failed, and the CLI waits before it tries again."""

    attempt: int
    most: int
    until: float
    """When it tries again."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How much there was so far."""

    started: float | None = None
    """When the session was started; `None` before."""
    completed: float | None = None
    """When it was over; `None` before."""
    tool_calls: int = 0
    messages: int = 0
    turns: int = 0
    """Prompts that are done with."""
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """A session at one moment. Holds nothing that changes."""

    state: State = "idle"
    phase: Phase = Phase.IDLE
    since: float = 0.0
    """When it came into this state."""
    session_id: str | None = None
    pending_tool_calls: tuple[PendingToolCall, ...] = ()
    pending_permissions: tuple[PendingPermission, ...] = ()
    open_asks: tuple[str, ...] = ()
    """The ids of everything that waits for an answer of a person: permissions, elicitations, …"""
    tasks: tuple[Task, ...] = ()
    """Background work and subagents that run now."""
    queued: tuple[str, ...] = ()
    """The uuids of prompts that the CLI has not seen."""
    retrying: Retrying | None = None
    stats: Stats = field(default_factory=Stats)


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The session came into another state."""

    before: State
    after: State
    snapshot: SessionSnapshot
    """The session as it was at that moment."""


# In words


def describe(snapshot: SessionSnapshot, now: float) -> str:
    """One line for people, such as `waiting for you 40 s`; `now` is on the clock of the entries."""
    if snapshot.phase is not Phase.RUNNING:
        words = snapshot.phase.value
        return _with_background(words, snapshot) if words in ("idle", "paused") else words
    found = (tell(snapshot, now) for tell in _TELLERS)
    return next(filter(None, found), f"working {_for(snapshot.since, now)}")


def _asking(snapshot: SessionSnapshot, now: float) -> str:
    asked = snapshot.pending_permissions
    count = max(len(asked), len(snapshot.open_asks))
    if not count:
        return ""
    since = min((each.since for each in asked), default=snapshot.since)
    also = f" ({count} questions)" if count > 1 else ""
    return f"waiting for you {_for(since, now)}{also}"


def _retrying(snapshot: SessionSnapshot, now: float) -> str:
    retry = snapshot.retrying
    if retry is None:
        return ""
    when = f"in {_seconds(retry.until - now)}" if retry.until > now else "now"
    return f"retrying {retry.attempt}/{retry.most} {when}"


def _calling(snapshot: SessionSnapshot, now: float) -> str:
    calls = snapshot.pending_tool_calls
    if not calls:
        return ""
    oldest = min(calls, key=lambda call: call.started)
    also = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
    return f"running {oldest.name}{also} {_for(oldest.started, now)}"


_TELLERS: tuple[Callable[[SessionSnapshot, float], str], ...] = (_asking, _retrying, _calling)
"""What is told first: what a person can do something about, then what takes long."""


def _with_background(words: str, snapshot: SessionSnapshot) -> str:
    background = [task for task in snapshot.tasks if task.is_background]
    if not background:
        return words
    agents = sum(task.is_agent for task in background)
    others = len(background) - agents
    parts = [
        f"{count} {word}" if count == 1 else f"{count} {word}s"
        for count, word in ((agents, "agent"), (others, "task"))
        if count
    ]
    told = f"background: {' and '.join(parts)}"
    return told if words == "idle" else f"{words}; {told}"


MINUTE, HOUR = 60, 3600


def _for(since: float, now: float) -> str:
    return _seconds(now - since)


def _seconds(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 2 * MINUTE:
        return f"{whole} s"
    return f"{whole // MINUTE} min" if whole < 2 * HOUR else f"{whole // HOUR} h"
