"""What a scheduler is asked for and answers, and its conversations: their line and their slots."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
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


class Line:
    """Conversations by the highest priority of their turns, then by who has waited longest.

    A conversation that has begun a turn stands behind all that wait, so those of one priority take
    turns. None waits for ever behind others of its own priority.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, ConversationState]] = []
        """Priority (negated), ticket and number; what is out of date is skipped."""
        self._tickets = count(1)
        self._numbers = count()

    def enter(self, conversation: ConversationState) -> None:
        """Put a conversation into the line, or to the place of its priority."""
        priority = max(each.priority for each in conversation.turns)
        conversation.ticket = conversation.ticket or next(self._tickets)
        entered = (-priority, conversation.ticket)
        if conversation.entered != entered:
            conversation.entered = entered
            heapq.heappush(self._heap, (*entered, next(self._numbers), conversation))

    @property
    def first(self) -> ConversationState | None:
        """The first conversation of the line."""
        while self._heap:
            priority, ticket, _, known = self._heap[0]
            if known.entered == (priority, ticket):
                return known
            heapq.heappop(self._heap)
        return None

    def pop(self) -> ConversationState | None:
        """Remove the first conversation from the line, and return it."""
        found = self.first
        if found is not None:
            heapq.heappop(self._heap)
            found.entered = None
        return found


class SlotTable:
    """The conversations that have a session: at most as many as there are slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.sessions: dict[str, ConversationState] = {}
        self.preparing = 0
        """How many sessions are being started ahead."""
        self._by_state: dict[SessionState, dict[str, ConversationState]] = {
            "working": {},
            "warm": {},
            "closing": {},
        }
        self._waiting: dict[str, ConversationState] = {}

    def set(self, conversation: ConversationState, state: SessionState) -> None:
        """Change what the session of a conversation does."""
        name = conversation.name
        if conversation.session != "none":
            del self._by_state[conversation.session][name]
        conversation.session = state
        self.set_waiting(conversation, None)
        if state == "none":
            self.sessions.pop(name, None)
            return
        self.sessions[name] = self._by_state[state][name] = conversation
        if state == "working":
            # Its next turn takes a place behind those that wait now.
            conversation.ticket = 0

    def set_waiting(self, conversation: ConversationState, since: float | None) -> None:
        """Record since when a turn waits only for the user; None if it does not."""
        conversation.waits_since = since
        if since is None:
            self._waiting.pop(conversation.name, None)
        else:
            self._waiting[conversation.name] = conversation

    @property
    def working(self) -> int:
        """How many turns run."""
        return len(self._by_state["working"])

    @property
    def busy(self) -> int:
        """How many turns run and do not wait for the user."""
        return self.working - len(self._waiting)

    @property
    def closing(self) -> int:
        """How many sessions are being closed or parked."""
        return len(self._by_state["closing"])

    @property
    def spares(self) -> int:
        """How many sessions wait for a conversation to come."""
        return sum(each.is_spare for each in self._by_state["warm"].values())

    @property
    def free(self) -> int:
        """How many slots are not used."""
        return self.slots - len(self.sessions) - self.preparing

    @property
    def is_unused(self) -> bool:
        """Whether all slots are free."""
        return not (self.sessions or self.preparing)

    @property
    def has_background(self) -> bool:
        """Whether a warm session has work of its own."""
        return any(each.has_background for each in self._by_state["warm"].values())

    def in_state(self, state: SessionState) -> list[ConversationState]:
        """Return the conversations whose session is in a state."""
        return list(self._by_state[state].values())

    def waiting(self) -> list[ConversationState]:
        """Return the conversations whose turn waits only for the user, and could be parked."""
        return list(self._waiting.values())

    def counts(self) -> SlotCounts:
        """Return how many slots are used for which purpose."""
        spares = self.spares
        return SlotCounts(
            self.slots,
            self.working,
            len(self._by_state["warm"]) - spares,
            spares,
            self.preparing,
            self.closing,
            self.free,
        )

    def least_missed(self) -> ConversationState | None:
        """Return the session to give up first; None if all are in use."""
        warm = self.in_state("warm")
        if warm:
            return min(warm, key=_missed_last)
        return min(self.waiting(), key=lambda each: each.waits_since or 0.0, default=None)


def _missed_last(session: ConversationState) -> tuple[int, float]:
    """Sort sessions by how little they are missed: those used last, or with work, come last."""
    if session.is_spare:
        return 0, session.since
    if session.has_background:
        return 3, session.since
    # One with turns that wait is closed only if all have; then the one whose turn is farthest.
    return (2, -session.ticket) if session.turns else (1, session.since)
