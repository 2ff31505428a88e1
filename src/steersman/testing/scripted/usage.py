"""Tokens and cost of a scripted CLI. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steersman._json import JsonDict

DEFAULT_MODEL = "claude-opus-5-5"

ALIASES: Mapping[str, str] = {
    "default": DEFAULT_MODEL,
    "opus": DEFAULT_MODEL,
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "fable": "claude-fable-5-2",
}

# US dollars per million tokens, as the stock CLI counted them: input, output, cache read.
DEFAULT_PRICE = (4.0, 20.0, 0.2)
PRICES: Mapping[str, tuple[float, float, float]] = {
    "claude-sonnet-5-5": (2.0, 10.0, 0.1),
    "claude-haiku-5-5": (0.1, 0.5, 0.01),
    "claude-fable-5-2": (8.0, 40.0, 0.4),
}
CACHE_WRITE = 1.25
"""The price of a cache write, as a multiple of the input price."""

KINDS: Mapping[str, str] = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
}

Usage = Mapping[str, int]


def resolve_model(name: str | None) -> str:
    """Return the model of an alias; other names are returned unchanged."""
    return DEFAULT_MODEL if name is None else ALIASES.get(name, name)


def shown_model(name: str) -> str:
    """Return the display name of a model: `claude-opus-5-5` is Opus 5.5."""
    family, *version = name.removeprefix("claude-").split("-")
    return f"{family.title()} {'.'.join(version)}"


@dataclass(slots=True)
class Model:
    """The current model."""

    name: str


class UsageTracker:
    """Counts tokens and cost, in total and since the last result."""

    def __init__(self) -> None:
        self._total = _Account()
        self._since = _Account()

    @property
    def cost(self) -> float:
        """The total cost in US dollars."""
        return self._total.cost

    def add(self, model: str, usage: Usage) -> None:
        """Add the usage of an answer."""
        self._total.add(model, usage)
        self._since.add(model, usage)

    def add_unpaid(self, usage: Usage) -> None:
        """Add the usage of a failed answer, which is reported but costs nothing."""
        self._since.unpaid = dict(usage)

    def settle(self, *, is_success: bool) -> JsonDict:
        """Return the usage fields of a result, and start to count for the next one."""
        since, self._since = self._since, _Account()
        return {
            **(since.first_request if is_success else {}),
            "total_cost_usd": self._total.cost,
            "usage": whole_usage(since.tokens),
            "modelUsage": self._total.by_model(),
            "model_usage_since_last_result": since.by_model(),
        }


class _Account:
    def __init__(self) -> None:
        self.first_request: dict[str, int] = {}
        self.unpaid: dict[str, int] = {}
        self._models: dict[str, dict[str, int]] = {}

    def add(self, model: str, usage: Usage) -> None:
        if not self._models:
            kinds = ("input_tokens", "cache_read_input_tokens")
            self.first_request = {f"first_request_{kind}": usage.get(kind, 0) for kind in kinds}
        used = self._models.setdefault(model, dict.fromkeys(KINDS, 0))
        for kind in KINDS:
            used[kind] += usage.get(kind, 0)

    @property
    def tokens(self) -> dict[str, int]:
        all_used = [*self._models.values(), self.unpaid]
        return {kind: sum(used.get(kind, 0) for used in all_used) for kind in KINDS}

    @property
    def cost(self) -> float:
        return sum(_cost(model, used) for model, used in self._models.items())

    def by_model(self) -> JsonDict:
        return {
            model: {
                **{KINDS[kind]: used[kind] for kind in KINDS},
                "cacheCreationEphemeral1hInputTokens": 0,
                "cacheCreationEphemeral5mInputTokens": 0,
                "thinkingTokens": 0,
                "webSearchRequests": 0,
                "costUSD": _cost(model, used),
                "contextWindow": 1_000_000,
                "maxOutputTokens": 128_000,
                "canonicalModel": model,
                "provider": "firstParty",
                "costBasis": "list",
            }
            for model, used in self._models.items()
        }


def _cost(model: str, used: Usage) -> float:
    price_in, price_out, price_cached = PRICES.get(model, DEFAULT_PRICE)
    micro_dollars = (
        used["input_tokens"] * price_in
        + used["output_tokens"] * price_out
        + used["cache_read_input_tokens"] * price_cached
        + used["cache_creation_input_tokens"] * price_in * CACHE_WRITE
    )
    return micro_dollars / 1_000_000


def whole_usage(tokens: Mapping[str, int]) -> JsonDict:
    """Return the usage as the CLI reports it, with zeros for what was not used."""
    return {
        **tokens,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": None,
    }
