"""Conversations of a scripted CLI: what its model is sent, and what a resume needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman._json import Json, JsonDict
from steersman.testing.request import ModelRequest
from steersman.testing.scripted.queue import Prompt

__all__ = ["CONTINUE", "Conversation", "History", "Memory"]

FOLDED = "The user sent a new message while you were working:\n"

CONTINUE = "Continue from where you left off."
"""What the CLI says to the model when it takes up a turn again."""


class History:
    """What was said so far, as the Messages API wants it."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._messages: list[JsonDict] = []

    def add_prompt(self, content: Json) -> None:
        """Something that the person said."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        self._add("user", blocks)

    def add_context(self, text: str) -> None:
        """Something that the person said and wants no answer to: it opens the next prompt."""
        self._add("user", [{"type": "text", "text": f"{text}\n"}])

    def add_reminders(self, texts: Iterable[str]) -> None:
        """Something that hooks want the model to know."""
        self._add(
            "user",
            [
                {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}
                for text in texts
            ],
        )

    def add_folded(self, text: str) -> None:
        """A prompt that came while the model was at work."""
        self._add("system", [{"type": "text", "text": FOLDED + text}])

    def add_answer(self, blocks: Sequence[JsonDict]) -> None:
        """What the model said."""
        self._add("assistant", blocks)

    def add_results(self, blocks: Sequence[JsonDict]) -> None:
        """What its tools gave."""
        self._add("user", blocks)

    def request(self, model: str, tools: Iterable[str]) -> ModelRequest:
        """The next request."""
        messages = [{**each, "content": list(each["content"])} for each in self._messages]
        return ModelRequest(
            {
                "model": model,
                "messages": messages,
                "system": [{"type": "text", "text": "You are a scripted CLI."}],
                "tools": [{"name": name} for name in tools],
                "metadata": {"user_id": self._session_id},
                "stream": True,
            }
        )

    def _add(self, role: str, blocks: Sequence[JsonDict]) -> None:
        if not blocks:
            return
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"] += blocks
        else:
            self._messages.append({"role": role, "content": list(blocks)})


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
