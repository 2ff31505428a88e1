"""Verbs about the context window and the cost of a conversation."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import field

from steersman._json import JsonDict
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
    """One category of tokens in the context window."""

    id: str = ""
    name: str = ""
    tokens: int = 0
    kind: str = ""
    """`used`, `free`, `buffer` or `deferred`."""
    color: str = ""
    """The name of the colour in which the CLI shows it."""
    is_deferred: bool = False
    """Whether it is loaded only when it is needed."""


class MemoryFile(Part, frozen=True, kw_only=True):
    """A memory file in the context, such as CLAUDE.md."""

    path: str = ""
    type: str = ""
    tokens: int = 0


class ContextUsage(Answer, frozen=True, kw_only=True):
    """The use of the context window, by category."""

    categories: list[ContextCategory] = []
    total_tokens: int = 0
    max_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0
    model: str = ""
    memory_files: list[MemoryFile] = []
    mcp_tools: list[JsonDict] = []
    mcp_instructions: list[JsonDict] = []
    deferred_builtin_tools: list[JsonDict] = []
    system_tools: list[JsonDict] = []
    system_prompt_sections: list[JsonDict] = []
    agents: list[JsonDict] = []
    slash_commands: JsonDict = {}
    skills: JsonDict = {}
    auto_compact_threshold: int | None = None
    autocompact_source: str | None = None
    """Where the threshold comes from, such as `model-default`."""
    is_auto_compact_enabled: bool = False
    message_breakdown: JsonDict = {}
    api_usage: JsonDict | None = None
    grid_rows: list[list[JsonDict]] = []
    """The cells of the grid that the CLI draws in a terminal."""


class GetContextUsage(Verb[ContextUsage], frozen=True, kw_only=True, tag="get_context_usage"):
    """Request the use of the context window."""

    TIMEOUT: ClassVar[float | None] = 120.0

    detail: Literal["summary", "full"] | None = None
    """`full` makes several API calls to count tokens; `summary` estimates."""


class SessionCost(Answer, frozen=True, kw_only=True):
    """The cost of the session, as a text."""

    text: str = ""


class GetSessionCost(Verb[SessionCost], frozen=True, kw_only=True, tag="get_session_cost"):
    """Request the cost of the session, as the CLI would print it."""


class SessionUsage(Part, frozen=True, kw_only=True):
    """The cost, the times and the changed lines of one session."""

    total_cost_usd: float = field(default=0.0, name="total_cost_usd")
    total_api_duration_ms: float = field(default=0, name="total_api_duration_ms")
    total_duration_ms: float = field(default=0, name="total_duration_ms")
    total_lines_added: int = field(default=0, name="total_lines_added")
    total_lines_removed: int = field(default=0, name="total_lines_removed")
    model_usage: dict[str, JsonDict] = field(
        default_factory=dict[str, JsonDict], name="model_usage"
    )


class UsageReport(Answer, frozen=True, kw_only=True):
    """The usage of the session, and what is left of the limits of a subscription."""

    session: SessionUsage = field(default_factory=SessionUsage)
    subscription_type: str | None = field(default=None, name="subscription_type")
    rate_limits_available: bool = field(default=False, name="rate_limits_available")
    """False with an API key, which has no such limits."""
    rate_limits: JsonDict | None = field(default=None, name="rate_limits")
    behaviors: JsonDict | None = None


class GetUsage(Verb[UsageReport], frozen=True, kw_only=True, tag="get_usage"):
    """Request the usage of the session and the limits of a subscription."""

    TIMEOUT: ClassVar[float | None] = 120.0

    skip_behaviors: bool = False
    """Skip the analysis of past sessions of this machine, which takes long."""
