"""Tokens, money and the context window."""

from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

__all__ = [
    "ContextUsageCategory",
    "ContextUsageResponse",
    "ModelUsage",
    "RateLimitInfo",
    "RateLimitStatus",
    "RateLimitType",
    "TaskUsage",
]


class ContextUsageCategory(TypedDict):
    """One part of what fills the context window."""

    name: str
    tokens: int
    color: str
    isDeferred: NotRequired[bool]


class ContextUsageResponse(TypedDict):
    """The answer of `ClaudeSDKClient.get_context_usage`."""

    categories: list[ContextUsageCategory]
    totalTokens: int
    maxTokens: int
    rawMaxTokens: int
    percentage: float
    model: str
    isAutoCompactEnabled: bool
    memoryFiles: list[dict[str, Any]]
    mcpTools: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    gridRows: list[list[dict[str, Any]]]
    autoCompactThreshold: NotRequired[int]
    deferredBuiltinTools: NotRequired[list[dict[str, Any]]]
    systemTools: NotRequired[list[dict[str, Any]]]
    systemPromptSections: NotRequired[list[dict[str, Any]]]
    slashCommands: NotRequired[dict[str, Any]]
    skills: NotRequired[dict[str, Any]]
    messageBreakdown: NotRequired[dict[str, Any]]
    apiUsage: NotRequired[dict[str, Any] | None]


class TaskUsage(TypedDict):
    """What a background task has used."""

    total_tokens: int
    tool_uses: int
    duration_ms: int


class ModelUsage(TypedDict):
    """What one model has used."""

    inputTokens: int
    outputTokens: int
    cacheReadInputTokens: int
    cacheCreationInputTokens: int
    webSearchRequests: int
    costUSD: float
    contextWindow: int
    maxOutputTokens: int
    canonicalModel: NotRequired[str]
    provider: NotRequired[str]


RateLimitStatus: TypeAlias = Literal["allowed", "allowed_warning", "rejected"]
"""Whether the next request is allowed."""


RateLimitType: TypeAlias = Literal[
    "five_hour", "seven_day", "seven_day_opus", "seven_day_sonnet", "overage"
]
"""The period that a usage limit is for."""


@dataclass
class RateLimitInfo:
    """How much of a usage limit is used; `raw` has all that the CLI sent."""

    status: RateLimitStatus
    resets_at: int | None = None
    rate_limit_type: RateLimitType | None = None
    utilization: float | None = None
    overage_status: RateLimitStatus | None = None
    overage_resets_at: int | None = None
    overage_disabled_reason: str | None = None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
