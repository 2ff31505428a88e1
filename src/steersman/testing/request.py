"""A request of the CLI to the model, as a script gets it.

Reads the body of a request to the Messages API, and finds out who sent it: the conversation, a
subagent, or the CLI for its own purposes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from steersman._json import Json, JsonDict, JsonObject

Kind = Literal["main", "subagent", "auxiliary"]

Purpose = Literal["json", "classifier", "side_question", "summary", "probe"]
"""Why the CLI sends an auxiliary request; see `auxiliary_purpose`."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to the Messages API."""

    body: JsonObject

    @classmethod
    def of_prompt(cls, text: str) -> ModelRequest:
        """Return the smallest request with the prompt `text`, for scripts played without HTTP."""
        return cls({"model": "scripted", "messages": [{"role": "user", "content": text}]})

    @property
    def model(self) -> str:
        """The name of the requested model."""
        return str(self.body.get("model", "scripted"))

    @property
    def is_streaming(self) -> bool:
        """True if the answer is to be streamed as events."""
        return bool(self.body.get("stream"))

    @property
    def system(self) -> str:
        """The system prompt as one text."""
        return "\n".join(texts_of(self.body.get("system")))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model may call."""
        return tuple(str(tool.get("name", "")) for tool in self.body.get("tools") or ())

    @property
    def first_text(self) -> str:
        """The first prompt of the user or the parent agent."""
        return next(self._written(), "")

    @property
    def last_text(self) -> str:
        """The last prompt of the user, also one that joined a running turn; not a tool result.

        This is one text block: the CLI sends a prompt in one message with earlier prompts that
        got no answer.
        """
        return ["", *self._written()][-1]

    @property
    def latest(self) -> str:
        """All text blocks of the last user message, including those that the CLI added."""
        return "\n".join(texts_of(self._last_user_content()))

    @property
    def tool_results(self) -> dict[str, str]:
        """The text of each tool result in the last user message, by tool use id."""
        return {
            str(block["tool_use_id"]): "\n".join(texts_of(block.get("content")))
            for block in blocks_of(self._last_user_content())
            if block.get("type") == "tool_result"
        }

    @property
    def position(self) -> tuple[str, int, str]:
        """The conversation and the position in it; equal for every repetition of a request."""
        spoken = [each for each in self._messages() if each.get("role") != "system"]
        return str(self.body.get("metadata")), len(spoken), self.latest

    def _messages(self) -> list[JsonDict]:
        return list(self.body.get("messages") or ())

    def _last_user_content(self) -> Json:
        contents = [each["content"] for each in self._messages() if each.get("role") == "user"]
        return contents[-1] if contents else None

    def _written(self) -> Iterator[str]:
        for message in self._messages():
            texts = texts_of(message.get("content"))
            if message.get("role") == "user":
                yield from written_in(texts)
            elif message.get("role") == "system":
                yield from folded_into(texts)


def kind_of(request: ModelRequest) -> Kind:
    """Return who sent the request. Only `main` requests use the plain steps of a script."""
    if auxiliary_purpose(request):
        return "auxiliary"
    return "subagent" if SUBAGENT_MARK in request.system else "main"


def auxiliary_purpose(request: ModelRequest) -> Purpose | None:
    """Return the purpose of an auxiliary request; None for a request of a conversation.

    CLI 2.1.325 sends these requests besides its conversations:

    - `json`: no tools and an output schema, for a session title (only if nonessential traffic is
      on) or a hook of type `prompt`. The conversation's own schema is a tool instead.
    - `classifier`: the judge of permission mode `auto`, not streamed (if telemetry is on).
    - `side_question`: the control request of that name, appended to the whole conversation.
    - `summary`: a compaction, appended to the whole conversation.
    - `probe`: a request for one token that tests the key; only older CLIs send it.

    Token counts use another path and are never passed to this function.
    """
    wants_json = "format" in (request.body.get("output_config") or {})
    marks: tuple[tuple[bool, Purpose], ...] = (
        (wants_json and not request.tools, "json"),
        (CLASSIFIER_MARK in request.system, "classifier"),
        (SIDE_REQUEST_MARK in request.latest, "side_question"),
        (SUMMARY_MARK in request.latest, "summary"),
        (request.body.get("max_tokens") == 1, "probe"),
    )
    return next((purpose for is_marked, purpose in marks if is_marked), None)


SUBAGENT_MARK = "cc_is_subagent=true"
"""Part of the billing line at the start of every system prompt, also of a caller's own."""

CLASSIFIER_MARK = "You are a security monitor for autonomous AI coding agents"
SIDE_REQUEST_MARK = "<system-reminder>This is a side question from the user."
SUMMARY_MARK = "Your task is to create a detailed summary of "

REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)

SYNTHETIC_PROMPTS = (
    "Output token limit hit.",
    "Your response above was ",
    "[Your previous response had no visible output.",
    "[Request interrupted by user",
)
"""The beginnings of user messages that the CLI itself writes, to continue an answer."""

FOLDED_PROMPT = re.compile(
    r"The user sent a new message while you were working:\n(.*?)(?:\n\nThis is how |\Z)", re.DOTALL
)


def blocks_of(content: Json) -> list[JsonDict]:
    """Return the blocks of a content, which is a string or a list of blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def texts_of(content: Json) -> list[str]:
    """Return the text of each text block of a content."""
    return [str(block["text"]) for block in blocks_of(content) if block.get("type") == "text"]


def written_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield the text that the user wrote, without what the CLI added."""
    stripped = (REMINDER.sub("", text).strip() for text in texts)
    return (text for text in stripped if text and not text.startswith(SYNTHETIC_PROMPTS))


def folded_into(texts: Iterable[str]) -> Iterator[str]:
    """Yield the prompts that the CLI folded into a running turn."""
    return (prompt for text in texts for prompt in FOLDED_PROMPT.findall(text))
