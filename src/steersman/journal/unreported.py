"""Tokens of messages that no result counts, because their CLI was lost before its result.

Entries in, tokens by turn out. Complete messages have the tokens with which they began; how many
the model wrote is known from the partial ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman._struct import CONVERT_ERRORS
from steersman.journal.costs import add_usage
from steersman.journal.entries import Entry, Kind, message_of
from steersman.messages.turns import Assistant, StreamEvent
from steersman.messages.usage import Usage

STARTS, DELTAS = "message_start", "message_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreported:
    """Tokens of messages that no result counts, because their CLI was lost before its result."""

    messages: int = 0
    """How many messages of the model these are."""
    model_usage: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """The tokens by model, including those of subagents."""
    is_exact: bool = True
    """Whether the output tokens are those that the model has written.

    False if a message had not ended, or came without partial messages, as with
    `include_partial_messages=False` and from subagents: its `output_tokens` are then those with
    which it began.
    """

    @property
    def usage(self) -> Usage:
        """The tokens of all models."""
        return add_usage(self.model_usage.values())

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self.messages > 0

    def __add__(self, other: Unreported) -> Unreported:
        models = dict(self.model_usage)
        for model, usage in other.model_usage.items():
            models[model] = add_usage((models[model], usage)) if model in models else usage
        return Unreported(
            messages=self.messages + other.messages,
            model_usage=models,
            is_exact=self.is_exact and other.is_exact,
        )

    def to_details(self) -> JsonDict:
        """Return it as plain values, for an entry."""
        models = {name: _counted(usage) for name, usage in self.model_usage.items()}
        return {"messages": self.messages, "model_usage": models, "is_exact": self.is_exact}

    @classmethod
    def from_details(cls, details: JsonObject) -> Unreported:
        """Return what `to_details` wrote; without any tokens if it cannot be read."""
        try:
            return msgspec.convert(dict(details), cls)
        except CONVERT_ERRORS:
            return cls()


@dataclass(slots=True)
class _Sent:
    """One message of the model."""

    turn: str
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    is_whole: bool = False
    """Whether its last tokens are known."""


def unreported_in(entries: Iterable[Entry], *, is_whole: bool = True) -> dict[str, Unreported]:
    """Return the tokens of the messages in `entries`, by turn.

    Without `is_whole`, entries before these are missing. A message of several turns counts for the
    first one, as its result would.
    """
    sent: dict[str, _Sent] = {}
    open_: dict[str | None, str] = {}
    """The message that is being streamed, by the tool call of its subagent."""
    for entry in entries:
        if not entry.turns or entry.kind not in (Kind.MESSAGE, Kind.PARTIAL):
            continue
        if entry.kind is Kind.MESSAGE:
            message = message_of(entry) if b'"assistant"' in entry.line else None
            if isinstance(message, Assistant) and not message.is_api_error_message:
                _complete(sent, entry.turns[0], message)
        elif STARTS.encode() in entry.line or DELTAS.encode() in entry.line:
            event = message_of(entry)
            if isinstance(event, StreamEvent):
                _stream(sent, open_, entry.turns[0], event)
    found: dict[str, Unreported] = {}
    for each in sent.values():
        known = found.get(each.turn, Unreported(is_exact=is_whole))
        one = Unreported(messages=1, model_usage={each.model: each.usage}, is_exact=each.is_whole)
        found[each.turn] = known + one
    return found


def _complete(sent: dict[str, _Sent], turn: str, message: Assistant) -> None:
    body = message.message
    one = sent.setdefault(body.id, _Sent(turn))
    one.model = one.model or body.model
    if not one.is_whole:
        one.usage = _greater(one.usage, body.usage)
        # A message that is sent whole has its reason; those of a stream are sent before it ends.
        one.is_whole = body.stop_reason is not None


def _stream(
    sent: dict[str, _Sent], open_: dict[str | None, str], turn: str, message: StreamEvent
) -> None:
    event = message.event
    if event.get("type") == STARTS:
        begun = event.get("message")
        if not _json.is_object(begun):
            return
        name = open_[message.parent_tool_use_id] = str(begun.get("id") or "")
        one = sent.setdefault(name, _Sent(turn, str(begun.get("model") or "")))
        one.usage = _greater(one.usage, _read(begun.get("usage")))
    elif event.get("type") == DELTAS:
        name = message.api_message_id or open_.get(message.parent_tool_use_id, "")
        if name in sent:
            sent[name].usage = _greater(sent[name].usage, _read(event.get("usage")))
            sent[name].is_whole = True


def _read(found: object) -> Usage:
    try:
        return msgspec.convert(found, Usage) if _json.is_object(found) else Usage()
    except CONVERT_ERRORS:
        return Usage()


_COUNTED = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


def _counted(usage: Usage) -> JsonDict:
    return {name: getattr(usage, name) for name in _COUNTED}


def _greater(one: Usage, other: Usage) -> Usage:
    """Return the later of two counts of one message: they only grow."""
    mine, theirs = _counted(one), _counted(other)
    return Usage(**{name: max(mine[name], theirs[name]) for name in _COUNTED})
