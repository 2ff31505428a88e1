"""The conversation that a scripted CLI sends to its model. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from steersman.testing.request import ModelRequest

__all__ = ["History"]

FOLDED = "The user sent a new message while you were working:\n"


class History:
    """What was said so far, as the Messages API wants it."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._messages: list[dict[str, Any]] = []

    def add_prompt(self, content: Any) -> None:
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

    def add_answer(self, blocks: Sequence[dict[str, Any]]) -> None:
        """What the model said."""
        self._add("assistant", blocks)

    def add_results(self, blocks: Sequence[dict[str, Any]]) -> None:
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

    def _add(self, role: str, blocks: Sequence[dict[str, Any]]) -> None:
        if not blocks:
            return
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"] += blocks
        else:
            self._messages.append({"role": role, "content": list(blocks)})
