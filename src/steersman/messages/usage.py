"""Tokens, cost, and the use of the context window."""

from __future__ import annotations

from msgspec import field

from steersman._json import Json, JsonDict
from steersman._struct import WireStruct

__all__ = ["ContextUsage", "ModelUsage", "Usage", "UsageReport"]


class Usage(WireStruct, frozen=True, kw_only=True):
    """Tokens of one API message or one turn."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens_details: JsonDict | None = None
    """Parts of `output_tokens`, such as `thinking_tokens`."""
    cache_creation: JsonDict | None = None
    """Parts of `cache_creation_input_tokens`, by how long they are cached."""
    server_tool_use: JsonDict | None = None
    """Requests of tools that the API runs itself, such as `web_search_requests`."""
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    iterations: Json = None
    fallback_credit: Json = None


class ModelUsage(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """Tokens and cost of one model."""

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
    """The use of the context window."""

    model: str = ""
    total_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0.0
    over_limit: Json = None
    categories: list[JsonDict] = []
    mcp_tools: list[JsonDict] = []
    memory_files: list[JsonDict] = []
    agents: list[JsonDict] = []
    skills: Json = None


class UsageReport(WireStruct, frozen=True, kw_only=True):
    """The cost of the session, and what is left of the limits of a subscription."""

    session: JsonDict = {}
    rate_limits: Json = None
