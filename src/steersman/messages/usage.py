"""What it took: tokens and money."""

from __future__ import annotations

from typing import Any

from msgspec import field

from steersman._values import Wire

__all__ = ["ModelUsage", "Usage"]


class Usage(Wire, frozen=True, kw_only=True):
    """Tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class ModelUsage(Wire, frozen=True, kw_only=True, rename="camel"):
    """Tokens and money of one model."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int | None = None
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_creation_ephemeral_5m_input_tokens: int | None = field(
        default=None, name="cacheCreationEphemeral5mInputTokens"
    )
    cache_creation_ephemeral_1h_input_tokens: int | None = field(
        default=None, name="cacheCreationEphemeral1hInputTokens"
    )
    web_search_requests: int = 0
    cost_usd: float = field(default=0.0, name="costUSD")
    context_window: int = 0
    max_output_tokens: int = 0
    canonical_model: str | None = None
    provider: str | None = None
    cost_basis: Any = None
