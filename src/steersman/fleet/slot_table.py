"""What each slot is used for: sessions in use, warm, started ahead, and being closed."""

from __future__ import annotations

from steersman.fleet.orders import ConversationState, SessionState, SlotCounts


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
        """Return what the slots are used for."""
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
