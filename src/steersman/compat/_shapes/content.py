"""Content blocks of messages."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = [
    "ContentBlock",
    "ServerToolName",
    "ServerToolResultBlock",
    "ServerToolUseBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
]


@dataclass
class TextBlock:
    """Text of the model, or of a prompt."""

    text: str


@dataclass
class ThinkingBlock:
    """What the model thought, with its signature."""

    thinking: str
    signature: str


@dataclass
class ToolUseBlock:
    """The model calls a tool."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ToolResultBlock:
    """The result of a tool call."""

    tool_use_id: str
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None


ServerToolName: TypeAlias = Literal[
    "advisor",
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
]
"""Tools that run at the API."""


@dataclass
class ServerToolUseBlock:
    """The model calls a tool that runs at the API."""

    id: str
    name: ServerToolName
    input: dict[str, Any]


@dataclass
class ServerToolResultBlock:
    """The result of a tool that ran at the API."""

    tool_use_id: str
    content: dict[str, Any]


ContentBlock: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ServerToolUseBlock
    | ServerToolResultBlock
)
"""One block of a message's content."""
