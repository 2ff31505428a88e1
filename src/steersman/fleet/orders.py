"""What a scheduler is asked for and what it answers, and what it knows of a conversation."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

SessionState = Literal["none", "working", "warm", "closing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One turn that is to run."""

    id: str
    conversation: str
    priority: int = 0
    is_next: bool = False
    """Whether it goes before the other turns of its conversation that wait."""
    budget: str | None = None
    amount: float | None = None
    """US dollars to reserve; None is the mean of past turns."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Run this turn, on the warm session of its conversation if it has one."""

    order: Order
    is_warm: bool


@dataclass(frozen=True, slots=True)
class Close:
    """Close the warm session of this conversation, and report `closed`."""

    conversation: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Park the session of this conversation, which waits for the user; its turn ends as parked."""

    conversation: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Start a session for a conversation to come, and report `prepared` or `closed`."""

    number: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """The budget of this turn is used up; it will not run."""

    order: Order


Action: TypeAlias = Begin | Close | Leave | Prepare | Refuse


@dataclass(frozen=True, slots=True)
class SlotCounts:
    """What the slots are used for; the others add up to `slots`."""

    slots: int
    working: int
    warm: int
    ready: int
    starting: int
    closing: int
    free: int


@dataclass(slots=True)
class ConversationState:
    """One conversation: its turns that wait, and its session."""

    name: str
    turns: deque[Order] = field(default_factory=deque[Order])
    head: str | None = None
    """The turn that runs, or is parked; no other one begins before it has ended."""
    is_parked: bool = False
    ticket: int = 0
    """The place in the line, from when it could begin a turn."""
    entered: tuple[int, int] | None = None
    """The priority and ticket under which it is in the line."""
    session: SessionState = "none"
    is_spare: bool = False
    """Whether the session was started ahead, and is not used."""
    since: float = 0.0
    """Since when the session is warm, or its turn runs."""
    waits_since: float | None = None
    """Since when the session waits for the user and could be parked."""
    has_background: bool = False
    """Whether a warm session still has work of its own."""
