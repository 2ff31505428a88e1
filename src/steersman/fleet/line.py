"""The line of conversations that could begin a turn: by priority, and then in turn."""

from __future__ import annotations

import heapq
from itertools import count

from steersman.fleet.orders import ConversationState


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
