"""The phases of a session and the only moves between them.

Waiting is not a phase: several tools and questions may be open at once, so a session keeps a set of
them beside its phase, and `waiting_tool_call` and `waiting_permission` are read off that set.
"""

from __future__ import annotations

from enum import Enum, StrEnum

__all__ = ["TABLE", "Move", "Phase", "step"]


class Phase(StrEnum):
    """Where a session stands."""

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
        """Whether nothing can happen any more."""
        return not TABLE[self]


class Move(Enum):
    """What takes a session from one phase to another."""

    LAUNCH = "launch"
    GREET = "greet"
    TAKE_UP = "take up a turn"
    """In whose middle another CLI was lost."""
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
    """Where `move` leads; a move that the table does not have leads nowhere."""
    return TABLE[phase].get(move, phase)
