"""Conversations of a scripted CLI: what waits, what its model gets, what a resume needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.testing.request import ModelRequest, texts_of
from steersman.testing.scripted.host import new_id

FOLDED = "The user sent a new message while you were working:\n"

CONTINUE = "Continue from where you left off."
"""The prompt that the CLI sends to the model when it resumes an interrupted turn."""


class History:
    """The messages so far, in the form of the Messages API."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._messages: list[JsonDict] = []
        self.lines: list[bytes] = []
        """What the CLI would have in its own file, as far as a resume depends on it."""
        self.deferred: JsonDict | None = None
        """The call that a hook has deferred, until it has a result: id, name and input."""
        self._last: str | None = None

    def add_prompt(self, content: Json, uuid: str | None = None) -> None:
        """Add a prompt of the user; without a `uuid` it is a note of the CLI."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        self._add("user", blocks)
        message = {"role": "user", "content": blocks}
        self._write("user", uuid, isMeta=uuid is None, message=message)

    def add_context(self, text: str) -> None:
        """Add a prompt that wants no answer: it becomes the beginning of the next prompt."""
        self._add("user", [{"type": "text", "text": f"{text}\n"}])

    def add_reminders(self, texts: Iterable[str]) -> None:
        """Add context that hooks provide for the model."""
        self._add(
            "user",
            [
                {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}
                for text in texts
            ],
        )

    def add_folded(self, text: str) -> None:
        """Add a prompt that arrived during the turn."""
        self._add("system", [{"type": "text", "text": FOLDED + text}])

    def add_answer(self, blocks: Sequence[JsonDict]) -> None:
        """Add an answer of the model."""
        self._add("assistant", blocks)
        if blocks:
            calls = any(each["type"] == "tool_use" for each in blocks)
            reason = "tool_use" if calls else "end_turn"
            message = {"id": new_id("msg"), "role": "assistant", "content": list(blocks)}
            self._write("assistant", message={**message, "stop_reason": reason})

    def add_results(self, blocks: Sequence[JsonDict]) -> None:
        """Add the results of tool calls."""
        self._add("user", blocks)
        if blocks:
            self._write("user", message={"role": "user", "content": list(blocks)})
        if self.deferred is not None:
            answered = {each.get("tool_use_id") for each in blocks}
            self.deferred = None if self.deferred["id"] in answered else self.deferred

    def add_deferred(self, call: JsonDict) -> None:
        """Note that a hook has deferred a call."""
        self.deferred = call
        attachment = {
            "type": "hook_deferred_tool",
            "toolUseID": call["id"],
            "toolName": call["name"],
        }
        self._write("attachment", attachment=attachment)

    def request(self, model: str, tools: Iterable[str]) -> ModelRequest:
        """Return the next request to the model."""
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

    def _write(self, kind: str, uuid: str | None = None, **fields: Json) -> None:
        entry = {"type": kind, "uuid": uuid or new_id(), "parentUuid": self._last, **fields}
        self._last = entry["uuid"]
        self.lines.append(_json.dumps(entry))

    def _add(self, role: str, blocks: Sequence[JsonDict]) -> None:
        if not blocks:
            return
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"] += blocks
        else:
            self._messages.append({"role": role, "content": list(blocks)})


class Conversation:
    """One conversation, across all processes that have resumed it."""

    def __init__(self, session_id: str) -> None:
        self.history = History(session_id)
        self.known: set[str] = set()
        """The uuids of prompts that an earlier process has started."""
        self._taken: set[str] = set()
        self._open: list[Prompt] = []

    def begin(self, prompts: list[Prompt]) -> None:
        """Record the prompts of a turn that starts, so that another process can resume it."""
        self._open = prompts
        self._taken |= {each.uuid for each in prompts if each.uuid is not None}

    def end(self) -> None:
        """Record the end of the turn."""
        self._open = []

    def resume(self) -> list[Prompt]:
        """Prepare for another process; return the prompt that resumes a lost turn, if any."""
        self.known |= self._taken
        uuids = [each.uuid for each in self._open if each.should_query and each.uuid is not None]
        self._open = []
        # The result of the resumed turn names the first prompt only.
        return [Prompt(CONTINUE, uuids[0])] if uuids else []


class Memory:
    """All conversations of a scripted CLI, by session id."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}

    def lines(self, session_id: str) -> list[bytes] | None:
        """Return the file of a conversation, as it were; None if there is none."""
        found = self._conversations.get(session_id)
        return None if found is None or not found.history.lines else [*found.history.lines]

    def open(self, session_id: str, *, resumes: bool) -> Conversation:
        """Return the conversation to resume, or a new one if the id is unknown or not resumed."""
        found = self._conversations.get(session_id) if resumes else None
        conversation = found or Conversation(session_id)
        self._conversations[session_id] = conversation
        return conversation


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
        """The text of the prompt, as a hook gets it."""
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
    """Return the content of merged prompts: their text joined by newlines, or else all blocks."""
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
