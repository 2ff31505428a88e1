"""Verbs about what a conversation holds and costs."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import field

from steersman._struct import Readers, many_objects
from steersman.control.verbs import Answer, Part, Verb

__all__ = [
    "ContextCategory",
    "ContextUsage",
    "GetContextUsage",
    "GetSessionCost",
    "GetUsage",
    "MemoryFile",
    "SessionCost",
    "SessionUsage",
    "UsageReport",
]


class ContextCategory(Part, frozen=True, kw_only=True):
    """One kind of thing in the context window."""

    id: str = ""
    name: str = ""
    tokens: int = 0
    kind: str = ""
    """`used`, `free`, `buffer` or `deferred`."""


class MemoryFile(Part, frozen=True, kw_only=True):
    """A memory file, such as CLAUDE.md, that stands in the context."""

    path: str = ""
    type: str = ""
    tokens: int = 0


class ContextUsage(Answer, frozen=True, kw_only=True):
    """How full the context window is, and of what."""

    READERS: ClassVar[Readers] = {
        "categories": many_objects(ContextCategory),
        "memory_files": many_objects(MemoryFile),
    }

    categories: list[ContextCategory] = []
    total_tokens: int = 0
    max_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0
    model: str = ""
    memory_files: list[MemoryFile] = []
    mcp_tools: list[dict[str, Any]] = []
    mcp_instructions: list[dict[str, Any]] = []
    deferred_builtin_tools: list[dict[str, Any]] = []
    system_tools: list[dict[str, Any]] = []
    system_prompt_sections: list[dict[str, Any]] = []
    agents: list[dict[str, Any]] = []
    slash_commands: dict[str, Any] = {}
    skills: dict[str, Any] = {}
    auto_compact_threshold: int | None = None
    is_auto_compact_enabled: bool = False
    message_breakdown: dict[str, Any] = {}
    api_usage: dict[str, Any] | None = None
    grid_rows: list[list[dict[str, Any]]] = []
    """What the CLI itself would draw."""


class GetContextUsage(Verb[ContextUsage], frozen=True, kw_only=True, tag="get_context_usage"):
    """Ask how full the context window is."""

    TIMEOUT: ClassVar[float | None] = 120.0

    detail: Literal["summary", "full"] | None = None
    """`full` has the API count tokens several times; `summary` estimates."""


class SessionCost(Answer, frozen=True, kw_only=True):
    """What the session has cost, in words."""

    text: str = ""


class GetSessionCost(Verb[SessionCost], frozen=True, kw_only=True, tag="get_session_cost"):
    """Ask what the session has cost, as the CLI would print it."""


class SessionUsage(Part, frozen=True, kw_only=True):
    """What one session has used."""

    total_cost_usd: float = field(default=0.0, name="total_cost_usd")
    total_api_duration_ms: float = field(default=0, name="total_api_duration_ms")
    total_duration_ms: float = field(default=0, name="total_duration_ms")
    total_lines_added: int = field(default=0, name="total_lines_added")
    total_lines_removed: int = field(default=0, name="total_lines_removed")
    model_usage: dict[str, dict[str, Any]] = field(
        default_factory=dict[str, dict[str, Any]], name="model_usage"
    )


class UsageReport(Answer, frozen=True, kw_only=True):
    """What was used, and what a subscription still allows."""

    session: SessionUsage = field(default_factory=SessionUsage)
    subscription_type: str | None = field(default=None, name="subscription_type")
    rate_limits_available: bool = field(default=False, name="rate_limits_available")
    """False with an API key: there are no such limits."""
    rate_limits: dict[str, Any] | None = field(default=None, name="rate_limits")
    behaviors: dict[str, Any] | None = None


class GetUsage(Verb[UsageReport], frozen=True, kw_only=True, tag="get_usage"):
    """Ask what was used, and what a subscription still allows."""

    TIMEOUT: ClassVar[float | None] = 120.0

    skip_behaviors: bool = False
    """Leave out what takes long: reading the past sessions of this machine."""
