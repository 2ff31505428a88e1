"""The cost and the tokens that each result adds.

The CLI's totals are cumulative, and most releases continue them after a resume. Newer CLIs also
send what was added since the last result; for older ones it is the difference of two totals, and
one that resumes a conversation is asked with which totals it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from steersman import _json
from steersman._json import Json, JsonObject
from steersman._struct import CONVERT_ERRORS, read_leniently
from steersman.messages.base import line_of
from steersman.messages.turns import Result
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
        """Return what was added between the last result and this one, and remember the totals."""
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
