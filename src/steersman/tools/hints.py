"""What the CLI is told about a tool's manners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from steersman.errors import UsageError

__all__ = ["HintWords", "ToolHints"]

YES_OR_NO = ("read_only", "destructive", "idempotent", "open_world", "always_load")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What the CLI is told about a tool's manners; `None` says nothing."""

    title: str | None = None
    read_only: bool | None = None
    """Changes nothing. The CLI runs calls of such tools at the same time, of others in turn."""
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    """Reaches beyond this program, such as the web."""
    max_result_size: int | None = None
    """Characters up to which the CLI shows a result whole instead of saving it to a file."""
    always_load: bool | None = None
    """Stands before the model from the start; other tools may have to be searched for first."""
    search_hint: str | None = None
    """Words by which such a search finds it."""

    def __post_init__(self) -> None:
        for name in YES_OR_NO:
            if getattr(self, name) not in (None, True, False):
                raise UsageError(name, getattr(self, name), "True, False or None")
        for name in ("title", "search_hint"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(name, getattr(self, name), "text or None")
        size = self.max_result_size
        if size is not None and (not isinstance(size, int) or size <= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("max_result_size", size, "a whole number above 0, or None")

    def annotations(self) -> dict[str, Any]:
        """Spell the hints as MCP does."""
        return _said(
            {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": self.open_world,
            }
        )

    def meta(self) -> dict[str, Any]:
        """Spell the hints that only Claude Code knows."""
        return _said(
            {
                "anthropic/maxResultSizeChars": self.max_result_size,
                "anthropic/alwaysLoad": self.always_load,
                "anthropic/searchHint": self.search_hint,
            }
        )


class HintWords(TypedDict, total=False):
    """The keywords of `@tool` that become its hints."""

    title: str | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    max_result_size: int | None
    always_load: bool | None
    search_hint: str | None


def _said(spelled: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spelled.items() if value is not None}
