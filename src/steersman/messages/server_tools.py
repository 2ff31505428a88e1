"""Blocks of tools that the API itself runs while it answers.

`content` names them in its union. The `content` of a result is the API's own object.
"""

from __future__ import annotations

from steersman._json import Json, JsonDict
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
    """The model uses a tool of the API, which also runs it."""

    id: str = ""
    name: str = ""
    input: JsonDict = {}


class ServerToolResult(WireStruct, frozen=True, kw_only=True):
    """The fields of every result of an API tool."""

    tool_use_id: str = ""
    content: Json = None


class WebSearchToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="web_search_tool_result"
):
    """The results of a web search: a list, or an error."""


class WebFetchToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="web_fetch_tool_result"
):
    """A fetched page, or an error."""


class AdvisorToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="advisor_tool_result"
):
    """The advice of another model."""


class CodeExecutionToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="code_execution_tool_result"
):
    """The output of a program that the API ran."""


class BashCodeExecutionToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="bash_code_execution_tool_result"
):
    """The output of a command that the API ran."""


class TextEditorCodeExecutionToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="text_editor_code_execution_tool_result"
):
    """A file that the API showed or edited."""


class ToolSearchToolResultBlock(
    ServerToolResult, frozen=True, kw_only=True, tag="tool_search_tool_result"
):
    """The tools that a tool search found."""


class McpToolUseBlock(WireStruct, frozen=True, kw_only=True, tag="mcp_tool_use"):
    """The model uses a tool of an MCP server that the API is connected to."""

    id: str = ""
    name: str = ""
    server_name: str = ""
    input: JsonDict = {}


class McpToolResultBlock(WireStruct, frozen=True, kw_only=True, tag="mcp_tool_result"):
    """The result of a tool of an MCP server that the API is connected to."""

    tool_use_id: str = ""
    content: str | list[JsonDict] | None = None
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
