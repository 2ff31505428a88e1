"""The cost and the tokens that each result adds, and those of messages that no result counts.

The CLI's totals are cumulative, and most releases continue them after a resume. Newer CLIs also
send what was added since the last result; for older ones it is the difference of two totals, and
one that resumes a conversation is asked with which totals it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._struct import CONVERT_ERRORS, read_leniently
from steersman.journal.journal import Entry, Kind, message_of
from steersman.messages.base import line_of
from steersman.messages.turns import Assistant, Result, StreamEvent
from steersman.messages.usage import ModelUsage, Usage

SINCE = b'"model_usage_since_last_result"'
TOTAL = b'"total_cost_usd"'


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost in US dollars, and tokens by model."""

    cost_usd: float = 0.0
    model_usage: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """Tokens by model, including those of subagents."""

    def __add__(self, other: Cost) -> Cost:
        models = dict(self.model_usage)
        for model, usage in other.model_usage.items():
            models[model] = _sum(models[model], usage) if model in models else usage
        return Cost(self.cost_usd + other.cost_usd, models)


class CostTracker:
    """Computes what each result added from the CLI's cumulative totals."""

    def __init__(self) -> None:
        self.total = 0.0
        """The CLI's own total in the last result."""
        self.before: float | None = None
        """The cost of a resumed conversation before its first result here; `None` before that.

        This and the costs of all turns add up to the CLI's last total.
        """
        self._models: Mapping[str, ModelUsage] = {}

    def begin(self, total: float, models: JsonObject) -> None:
        """Count from these totals, with which another CLI has resumed the conversation."""
        self.total, self._models = total, _read(models)
        if self.before is None:
            self.before = total

    def add(self, result: Result) -> Cost:
        """Return the cost between the last result and this one, and remember the totals."""
        total = result.total_cost_usd or 0.0
        added = self._added(result, total)
        if self.before is None:
            self.before = max(0.0, total - added.cost_usd)
        self.total, self._models = total, result.model_usage
        return added

    def _added(self, result: Result, total: float) -> Cost:
        # If the field is there but empty, nothing was added, whatever the total of a resumed
        # conversation is.
        if result.model_usage_since_last_result or SINCE in (line_of(result) or b""):
            models = _read(result.model_usage_since_last_result)
            return Cost(sum(each.cost_usd for each in models.values()), models)
        # A smaller total means that the CLI has reset it, as `/clear` does.
        if total < self.total:
            return Cost(total, result.model_usage)
        return Cost(total - self.total, _difference(result.model_usage, self._models))


def totals_in(line: bytes) -> tuple[float, JsonObject] | None:
    """Return cost and usage by model from a line that answers `get_usage`; None from others."""
    if TOTAL not in line:
        return None
    try:
        found = _json.loads(line)
    except ValueError:
        return None
    match found:
        case {
            "type": "control_response",
            "response": {
                "response": {"session": {"total_cost_usd": int() | float() as total, **more}}
            },
        }:
            models = more.get("model_usage")
            return total, models if _json.is_object(models) else {}
        case _:
            return None


def add_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several usages; what only describes one of them is left out."""
    found = list(usages)
    if len(found) == 1:
        return found[0]
    return Usage(
        input_tokens=sum(each.input_tokens for each in found),
        output_tokens=sum(each.output_tokens for each in found),
        cache_creation_input_tokens=sum(each.cache_creation_input_tokens for each in found),
        cache_read_input_tokens=sum(each.cache_read_input_tokens for each in found),
    )


_COUNTED = (
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_ephemeral_5m_input_tokens",
    "cache_creation_ephemeral_1h_input_tokens",
    "web_search_requests",
    "cost_usd",
)
"""The fields that are sums; the others describe the model."""


def _sum(one: ModelUsage, other: ModelUsage, sign: int = 1) -> ModelUsage:
    counted: dict[str, float | None] = {
        name: mine if theirs is None else (mine or 0) + sign * theirs
        for name in _COUNTED
        for mine, theirs in [(getattr(one, name), getattr(other, name))]
    }
    return msgspec.structs.replace(one, **counted)


def _difference(
    after: Mapping[str, ModelUsage], before: Mapping[str, ModelUsage]
) -> dict[str, ModelUsage]:
    added = {
        model: _sum(usage, before[model], -1) if model in before else usage
        for model, usage in after.items()
    }
    return {model: usage for model, usage in added.items() if usage != _empty_like(usage)}


def _empty_like(usage: ModelUsage) -> ModelUsage:
    return _sum(usage, usage, -1)


def _read(found: JsonObject) -> dict[str, ModelUsage]:
    return {model: _model_usage(usage) for model, usage in found.items()}


def _model_usage(found: Json) -> ModelUsage:
    fields = found if _json.is_object(found) else {}
    try:
        return msgspec.convert(fields, ModelUsage)
    except CONVERT_ERRORS:
        return read_leniently(ModelUsage, fields)


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
        """Read the details that `to_details` wrote; without any tokens if they cannot be read."""
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
        one.usage = _greater(one.usage, _usage_of(begun.get("usage")))
    elif event.get("type") == DELTAS:
        name = message.api_message_id or open_.get(message.parent_tool_use_id, "")
        if name in sent:
            sent[name].usage = _greater(sent[name].usage, _usage_of(event.get("usage")))
            sent[name].is_whole = True


def _usage_of(found: object) -> Usage:
    try:
        return msgspec.convert(found, Usage) if _json.is_object(found) else Usage()
    except CONVERT_ERRORS:
        return Usage()


_TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


def _counted(usage: Usage) -> JsonDict:
    return {name: getattr(usage, name) for name in _TOKENS}


def _greater(one: Usage, other: Usage) -> Usage:
    """Return the later of two counts of one message: they only grow."""
    mine, theirs = _counted(one), _counted(other)
    return Usage(**{name: max(mine[name], theirs[name]) for name in _TOKENS})
