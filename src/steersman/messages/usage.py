"""What it took: tokens, money, and room in the context window."""

from __future__ import annotations

from typing import Any

from msgspec import field

from steersman._struct import WireStruct

__all__ = ["ContextUsage", "ModelUsage", "Usage", "UsageReport"]


class Usage(WireStruct, frozen=True, kw_only=True):
    """Tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class ModelUsage(WireStruct, frozen=True, kw_only=True, rename="camel"):
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
    cost_basis: str | None = None


class ContextUsage(WireStruct, frozen=True, kw_only=True):
    """What fills the context window."""

    model: str = ""
    total_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0.0
    over_limit: Any = None
    categories: list[dict[str, Any]] = []
    mcp_tools: list[dict[str, Any]] = []
    memory_files: list[dict[str, Any]] = []
    agents: list[dict[str, Any]] = []
    skills: Any = None


class UsageReport(WireStruct, frozen=True, kw_only=True):
    """The session's cost and what is left of the plan's limits."""

    session: dict[str, Any] = {}
    rate_limits: Any = None
