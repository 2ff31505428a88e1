"""What a scripted CLI has written down of its conversations, for the processes that resume them."""

from __future__ import annotations

from steersman.testing.scripted.history import History
from steersman.testing.scripted.queue import Prompt

__all__ = ["CONTINUE", "Conversation", "Memory"]

CONTINUE = "Continue from where you left off."
"""What the CLI says to the model when it takes up a turn again."""


class Conversation:
    """One conversation, over all the processes that it has had."""

    def __init__(self, session_id: str) -> None:
        self.history = History(session_id)
        self.known: set[str] = set()
        """The uuids of prompts that an earlier process has taken up."""
        self._taken: set[str] = set()
        self._open: list[Prompt] = []

    def begin(self, prompts: list[Prompt]) -> None:
        """A turn begins; lost from here on, it can be taken up again."""
        self._open = prompts
        self._taken |= {each.uuid for each in prompts if each.uuid is not None}

    def end(self) -> None:
        """The turn has come to its end."""
        self._open = []

    def resume(self) -> list[Prompt]:
        """Another process goes on; gives the prompts of the turn that it takes up, if it may."""
        self.known |= self._taken
        uuids = [each.uuid for each in self._open if each.should_query]
        self._open = []
        # The first one is named in the end.
        return [Prompt(CONTINUE, uuids[0])] if uuids else []


class Memory:
    """All conversations, by id; one that has not begun is not written down."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}

    def open(self, session_id: str, *, resumes: bool) -> Conversation:
        """The conversation of that id; a new one if it is not resumed, or was never begun."""
        found = self._conversations.get(session_id) if resumes else None
        conversation = found or Conversation(session_id)
        self._conversations[session_id] = conversation
        return conversation
