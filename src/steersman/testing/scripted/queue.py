"""The queue of prompts in a scripted CLI. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from steersman._json import Json
from steersman.testing.request import texts_of

PRIORITIES = ("now", "next", "later")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message."""

    content: Json
    uuid: str | None = None
    priority: str = "next"
    should_query: bool = True

    @property
    def text(self) -> str:
        """The texts of the prompt, as a hook gets them."""
        return "\n".join(texts_of(self.content))


class PromptQueue:
    """Prompts that wait for the current turn; prompts of one priority become one turn."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.known = frozenset(known)
        """The uuids of prompts that an earlier process of the conversation has started."""
        self._waiting: list[Prompt] = []
        self._seen: set[str] = set(self.known)

    @property
    def uuids(self) -> list[str]:
        """The uuids of the waiting prompts, in order."""
        return [each.uuid for each in self._waiting if each.uuid is not None]

    def add(self, prompt: Prompt) -> bool:
        """Add a prompt; return False for a uuid that was seen before, which is dropped."""
        if prompt.uuid is not None:
            if prompt.uuid in self._seen:
                return False
            self._seen.add(prompt.uuid)
        self._waiting.append(prompt)
        return True

    def take(self) -> list[Prompt]:
        """Remove and return the prompts of the next turn: all of the highest priority.

        A prompt with `shouldQuery: false` is a turn by itself.
        """
        for priority in PRIORITIES:
            candidates = [each for each in self._waiting if each.priority == priority]
            if candidates:
                return self._remove(_one_turn(candidates))
        return []

    def take_foldable(self) -> list[Prompt]:
        """Remove and return the prompts that join a running turn after a tool call."""
        return self._remove(
            [each for each in self._waiting if each.priority == "next" and each.should_query]
        )

    def withdraw(self, uuid: str) -> bool:
        """Remove a waiting prompt; return whether it was there."""
        return bool(self._remove([each for each in self._waiting if each.uuid == uuid]))

    def _remove(self, prompts: list[Prompt]) -> list[Prompt]:
        taken = set(map(id, prompts))
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        return prompts


def joined_content(prompts: Iterable[Prompt]) -> Json:
    """Return the content of merged prompts: texts joined by newlines, or else all blocks."""
    contents = [each.content for each in prompts]
    if all(isinstance(content, str) for content in contents):
        return "\n".join(contents)
    return [block for content in contents for block in _blocks(content)]


def _one_turn(candidates: list[Prompt]) -> list[Prompt]:
    if not candidates[0].should_query:
        return candidates[:1]
    silent = next((n for n, each in enumerate(candidates) if not each.should_query), None)
    return candidates[:silent]


def _blocks(content: Json) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
