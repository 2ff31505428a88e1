"""Tools that look at the web."""

from __future__ import annotations

from typing import Any

from steersman.messages.builtin.base import ToolInput, ToolOutput

__all__ = ["WebFetchInput", "WebFetchOutput", "WebSearchInput", "WebSearchOutput"]


class WebFetchInput(ToolInput, frozen=True, kw_only=True):
    """`WebFetch`: read a page and answer a question about it."""

    url: str = ""
    prompt: str = ""
    offset: int | None = None


class WebFetchOutput(ToolOutput, frozen=True, kw_only=True):
    """The answer, and what the page's server said."""

    url: str | None = None
    code: int | None = None
    code_text: str | None = None
    bytes: int | None = None
    result: str | None = None
    duration_ms: float | None = None
    artifact_read: Any = None


class WebSearchInput(ToolInput, frozen=True, kw_only=True):
    """`WebSearch`: search the web."""

    query: str = ""
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None


class WebSearchOutput(ToolOutput, frozen=True, kw_only=True):
    """What was found; `results` mixes lists of links with prose."""

    query: str | None = None
    results: list[Any] | None = None
    duration_seconds: float | None = None
    search_count: int | None = None
