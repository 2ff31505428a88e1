"""The phases of a session and the allowed moves between them.

Waiting is not a phase: several tool calls and permission requests may be open at once. A session
keeps a set of them, from which the states `waiting_tool_call` and `waiting_permission` follow.
"""

from __future__ import annotations

from enum import Enum, StrEnum


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
