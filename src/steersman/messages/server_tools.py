"""Blocks of tools that the API runs itself, in the middle of an answer.

`content` names them in its union. A result's `content` is the API's own, by its `type`.
"""

from __future__ import annotations

from typing import Any

from steersman._struct import WireStruct

__all__ = [
    "AdvisorToolResultBlock",
    "BashCodeExecutionToolResultBlock",
    "CodeExecutionToolResultBlock",
    "McpToolResultBlock",
    "McpToolUseBlock",
    "ServerBlock",
    "ServerToolResult",
    "ServerToolUseBlock",
    "TextEditorCodeExecutionToolResultBlock",
    "ToolSearchToolResultBlock",
    "WebFetchToolResultBlock",
    "WebSearchToolResultBlock",
]


class ServerToolUseBlock(WireStruct, frozen=True, kw_only=True, tag="server_tool_use"):
    """The model uses a tool of the API; nobody needs to answer."""

    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class ServerToolResult(WireStruct, frozen=True, kw_only=True):
    """What every result of a tool of the API has."""

    tool_use_id: str = ""
    content: Any = None


class WebSearchToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="web_search_tool_result"
):
    """What a search of the web found: a list, or an error."""


class WebFetchToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="web_fetch_tool_result"
):
    """A page of the web, or an error."""


class AdvisorToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="advisor_tool_result"
):
    """What another model advised."""


class CodeExecutionToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="code_execution_tool_result"
):
    """What a program printed that the API ran."""


class BashCodeExecutionToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="bash_code_execution_tool_result"
):
    """What a command printed that the API ran."""


class TextEditorCodeExecutionToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="text_editor_code_execution_tool_result"
):
    """A file that the API showed or edited."""


class ToolSearchToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="tool_search_tool_result"
):
    """The tools that a search among them found."""


class McpToolUseBlock(WireStruct, frozen=True, kw_only=True, tag="mcp_tool_use"):
    """The model uses a tool of an MCP server that the API is connected to."""

    id: str = ""
    name: str = ""
    server_name: str = ""
    input: dict[str, Any] = {}


class McpToolResultBlock(WireStruct, frozen=True, kw_only=True, tag="mcp_tool_result"):
    """What such a server gave back."""

    tool_use_id: str = ""
    content: str | list[dict[str, Any]] | None = None
    is_error: bool = False


ServerBlock = (
    ServerToolUseBlock
    | WebSearchToolResultBlock
    | WebFetchToolResultBlock
    | AdvisorToolResultBlock
    | CodeExecutionToolResultBlock
    | BashCodeExecutionToolResultBlock
    | TextEditorCodeExecutionToolResultBlock
    | ToolSearchToolResultBlock
    | McpToolUseBlock
    | McpToolResultBlock
)
