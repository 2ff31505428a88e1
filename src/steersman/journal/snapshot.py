"""A session at one moment: its phase, its state, and a description of it in one line.

Waiting is not a phase: several tool calls and permission requests may be open at once. A session
keeps a set of them, from which the states `waiting_tool_call` and `waiting_permission` follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import Literal

from steersman._json import JsonDict, JsonObject
from steersman.journal.results import TurnResult
from steersman.journal.tasks import Task


class Phase(StrEnum):
    """The phase of a session."""

    IDLE = "idle"
    """Not started yet, or between turns."""
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether the session has ended: no move leads out of this phase."""
        return not TABLE[self]


class Move(Enum):
    """An event that moves a session from one phase to another."""

    LAUNCH = "launch"
    GREET = "greet"
    TAKE_UP = "take up a turn"
    """A new CLI continues a turn that a lost CLI had begun."""
    BEGIN = "begin a turn"
    REST = "come to rest"
    PAUSE = "pause"
    RESUME = "resume"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"


_ENDINGS = {
    Move.COMPLETE: Phase.COMPLETED,
    Move.FAIL: Phase.FAILED,
    Move.CANCEL: Phase.CANCELLED,
}

TABLE: dict[Phase, dict[Move, Phase]] = {
    Phase.IDLE: {
        Move.LAUNCH: Phase.STARTING,
        Move.BEGIN: Phase.RUNNING,
        Move.REST: Phase.IDLE,
        Move.PAUSE: Phase.PAUSED,
        **_ENDINGS,
    },
    Phase.STARTING: {Move.GREET: Phase.IDLE, Move.TAKE_UP: Phase.RUNNING, **_ENDINGS},
    Phase.RUNNING: {
        Move.LAUNCH: Phase.STARTING,
        Move.BEGIN: Phase.RUNNING,
        Move.REST: Phase.IDLE,
        Move.PAUSE: Phase.PAUSED,
        **_ENDINGS,
    },
    Phase.PAUSED: {
        Move.LAUNCH: Phase.STARTING,
        Move.RESUME: Phase.RUNNING,
        Move.REST: Phase.PAUSED,
        **_ENDINGS,
    },
    Phase.COMPLETED: {},
    Phase.FAILED: {},
    Phase.CANCELLED: {},
}


def step(phase: Phase, move: Move) -> Phase:
    """Return the phase after `move`; `phase` itself if the table has no such move."""
    return TABLE[phase].get(move, phase)


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
    """A tool call that has no result yet."""

    tool_use_id: str
    """The id of the call; empty if the CLI has not sent it."""
    name: str
    server: str | None = None
    """The MCP server of the tool; `None` for the CLI's own tools."""
    arguments: JsonObject = field(default_factory=JsonDict)
    started: float = 0.0
    """Seconds since the epoch, as all times in this module."""
    is_ours: bool = False
    """Whether the tool runs in this process, so that the CLI waits for the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPermission:
    """A permission request that waits for a decision."""

    request_id: str
    tool_name: str = ""
    input: JsonObject = field(default_factory=JsonDict)
    since: float = 0.0
    agent_id: str | None = None
    """The subagent that made the tool call; `None` for the main agent."""
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """The API failed, and the CLI waits before the next attempt."""

    attempt: int
    most: int
    until: float
    """When the next attempt starts."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts and times of a session."""

    started: float | None = None
    """When the session started; `None` before."""
    completed: float | None = None
    """When the session ended; `None` before."""
    tool_calls: int = 0
    messages: int = 0
    turns: int = 0
    """How many prompts have settled."""
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """A session at one moment; immutable."""

    state: State = "idle"
    phase: Phase = Phase.IDLE
    since: float = 0.0
    """When the session entered this state."""
    session_id: str | None = None
    pending_tool_calls: tuple[PendingToolCall, ...] = ()
    pending_permissions: tuple[PendingPermission, ...] = ()
    open_asks: tuple[str, ...] = ()
    """The ids of all requests that wait for the user: permissions, elicitations, dialogs."""
    tasks: tuple[Task, ...] = ()
    """Running background tasks and subagents."""
    queued: tuple[str, ...] = ()
    """The uuids of prompts that were not sent to the CLI yet."""
    behind_ask: tuple[str, ...] = ()
    """The uuids of prompts whose turn is `behind_ask`: the CLI works on an earlier turn, and that
    one waits for an answer."""
    retrying: Retrying | None = None
    stats: Stats = field(default_factory=Stats)
    unknown: JsonDict = field(default_factory=JsonDict, repr=False)
    """The fields of the JSON it was read from that this release does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded(SessionSnapshot):
    """The last snapshot of a session, with the result of the turn that settled last."""

    result: TurnResult | None = None
    """`None` if no turn has settled."""

    @classmethod
    def of(cls, last: SessionSnapshot, result: TurnResult | None) -> SessionEnded:
        """Return a snapshot together with a result."""
        return cls(**{each.name: getattr(last, each.name) for each in fields(last)}, result=result)


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The session entered another state."""

    before: State
    after: State
    snapshot: SessionSnapshot
    """The session at that moment."""


# As text


def describe(snapshot: SessionSnapshot, now: float) -> str:
    """Describe `snapshot` in one line, such as `waiting for you 40 s`.

    `now` is on the clock of the entries: seconds since the epoch.
    """
    if snapshot.phase is not Phase.RUNNING:
        text = snapshot.phase.value
        return _with_background(text, snapshot) if text in ("idle", "paused") else text
    found = (describer(snapshot, now) for describer in _DESCRIBERS)
    return next(filter(None, found), f"working {_for(snapshot.since, now)}")


def _asking(snapshot: SessionSnapshot, now: float) -> str:
    asked = snapshot.pending_permissions
    count = max(len(asked), len(snapshot.open_asks))
    if not count:
        return ""
    since = min((each.since for each in asked), default=snapshot.since)
    also = f" ({count} asks)" if count > 1 else ""
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


_DESCRIBERS: tuple[Callable[[SessionSnapshot, float], str], ...] = (_asking, _retrying, _calling)
"""In order of priority: first what the user can act on, then what takes long."""


def _with_background(text: str, snapshot: SessionSnapshot) -> str:
    background = [task for task in snapshot.tasks if task.is_background]
    if not background:
        return text
    agents = sum(task.is_agent for task in background)
    others = len(background) - agents
    parts = [
        f"{count} {noun}" if count == 1 else f"{count} {noun}s"
        for count, noun in ((agents, "agent"), (others, "task"))
        if count
    ]
    also = f"background: {' and '.join(parts)}"
    return also if text == "idle" else f"{text}; {also}"


MINUTE, HOUR = 60, 3600


def _for(since: float, now: float) -> str:
    return _seconds(now - since)


def _seconds(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 2 * MINUTE:
        return f"{whole} s"
    return f"{whole // MINUTE} min" if whole < 2 * HOUR else f"{whole // HOUR} h"
