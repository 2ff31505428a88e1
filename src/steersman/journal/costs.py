"""What each result adds to the bill.

The CLI's totals are cumulative, and go on after a resume; what was added since the last result
stands beside them on CLIs that tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from steersman import _json
from steersman._json import Json, JsonObject
from steersman._values import MISFITS, read_leniently
from steersman.messages.lines import line_of
from steersman.messages.turns import Result
from steersman.messages.usage import ModelUsage, Usage

__all__ = ["Cost", "CostTracker", "add_usage"]

SINCE = b'"model_usage_since_last_result"'


@dataclass(frozen=True, slots=True)
class Cost:
    """Money and tokens, by model."""

    cost_usd: float = 0.0
    model_usage: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """With those of subagents."""

    def __add__(self, other: Cost) -> Cost:
        models = dict(self.model_usage)
        for model, usage in other.model_usage.items():
            models[model] = _sum(models[model], usage) if model in models else usage
        return Cost(self.cost_usd + other.cost_usd, models)


class CostTracker:
    """Turns the CLI's running totals into what each result added."""

    def __init__(self) -> None:
        self.total = 0.0
        """The CLI's own total, as of the last result."""
        self.before: float | None = None
        """What the conversation had cost before the first result heard here: a resumed one's past.

        With it, the costs of all turns are together the CLI's last total.
        """
        self._models: Mapping[str, ModelUsage] = {}

    def add(self, result: Result) -> Cost:
        """What was spent between the last result and this one."""
        total = result.total_cost_usd or 0.0
        added = self._added(result, total)
        if self.before is None:
            self.before = max(0.0, total - added.cost_usd)
        self.total, self._models = total, result.model_usage
        return added

    def _added(self, result: Result, total: float) -> Cost:
        # An empty answer is an answer: nothing was added, though the total of a resumed
        # conversation may be anything.
        if result.model_usage_since_last_result or SINCE in (line_of(result) or b""):
            models = _read(result.model_usage_since_last_result)
            return Cost(sum(each.cost_usd for each in models.values()), models)
        # A total that fell was reset, as `/clear` does.
        if total < self.total:
            return Cost(total, result.model_usage)
        return Cost(total - self.total, _difference(result.model_usage, self._models))


def add_usage(usages: Iterable[Usage]) -> Usage:
    """The tokens of several results together."""
    found = list(usages)
    if len(found) == 1:
        return found[0]
    totals: dict[str, int] = {
        name: sum(getattr(each, name) for each in found) for name in Usage.__struct_fields__
    }
    return Usage(**totals)


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
"""What adds up; the rest describes the model."""


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
    except MISFITS:
        return read_leniently(ModelUsage, fields)
