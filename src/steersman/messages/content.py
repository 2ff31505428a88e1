"""Content blocks, which the content of a message is a list of.

To add a block, write its class here and name it in `KnownBlock`, or in `ServerBlock` if the API
made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import force_setattr

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import CONVERT_ERRORS, SOURCE, Path, WireStruct, set_source

if TYPE_CHECKING:
    from steersman.messages.builtin import ToolInput

__all__ = [
    "AdvisorToolResultBlock",
    "BashCodeExecutionToolResultBlock",
    "Block",
    "CodeExecutionToolResultBlock",
    "CompactionBlock",
    "ContainerUploadBlock",
    "DocumentBlock",
    "FallbackBlock",
    "ImageBlock",
    "McpToolResultBlock",
    "McpToolUseBlock",
    "RedactedThinkingBlock",
    "SearchResultBlock",
    "ServerBlock",
    "ServerToolResult",
    "ServerToolUseBlock",
    "TextBlock",
    "TextEditorCodeExecutionToolResultBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolSearchToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
    "WebFetchToolResultBlock",
    "WebSearchToolResultBlock",
]


class TextBlock(WireStruct, frozen=True, kw_only=True, tag="text"):
    """Text."""

    text: str = ""
    citations: list[JsonDict] | None = None


class ThinkingBlock(WireStruct, frozen=True, kw_only=True, tag="thinking"):
    """The model's thinking, with a signature that proves it unedited."""

    thinking: str = ""
    signature: str = ""


class RedactedThinkingBlock(WireStruct, frozen=True, kw_only=True, tag="redacted_thinking"):
    """Thinking that only the API can read."""

    data: str = ""


class ToolUseBlock(WireStruct, frozen=True, kw_only=True, tag="tool_use"):
    """A tool call that the model requests."""

    id: str = ""
    name: str = ""
    input: JsonDict = {}

    def typed(self) -> ToolInput | JsonDict:
        """Return the input as the class of its tool, such as `BashInput`; `input` if not built in.

        A malformed field has its default there; `raw` of the typed input has its value.
        """
        # Imported here, because most programs use none of its hundred classes.
        from steersman.messages.builtin import typed_input  # noqa: PLC0415

        found = typed_input(self.name, self.input)
        return found if isinstance(found, dict) else set_source(found, (self, ("input",)))


class ToolResultBlock(WireStruct, frozen=True, kw_only=True, tag="tool_result"):
    """The result of a tool call."""

    tool_use_id: str = ""
    content: str | list[JsonDict] | None = None
    is_error: bool | None = None


class ImageBlock(WireStruct, frozen=True, kw_only=True, tag="image"):
    """An image, inline or by reference."""

    source: JsonDict = {}


class DocumentBlock(WireStruct, frozen=True, kw_only=True, tag="document"):
    """A document, inline or by reference."""

    source: JsonDict = {}
    title: str | None = None
    context: str | None = None
    citations: JsonDict | None = None


class SearchResultBlock(WireStruct, frozen=True, kw_only=True, tag="search_result"):
    """A search result that the model can cite."""

    source: str = ""
    title: str = ""
    content: list[JsonDict] = []
    citations: JsonDict | None = None


class ContainerUploadBlock(WireStruct, frozen=True, kw_only=True, tag="container_upload"):
    """A file that was uploaded to the container in which the API runs code."""

    file_id: str = ""


class CompactionBlock(WireStruct, frozen=True, kw_only=True, tag="compaction"):
    """The API replaced earlier content by a summary."""

    content: str | None = None


class FallbackBlock(WireStruct, frozen=True, kw_only=True, tag="fallback"):
    """Another model answers from here on; `raw` has the details."""


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


class UnknownBlock(WireStruct, frozen=True, kw_only=True):
    """A block that this release does not know; `raw` has the whole object."""

    type: str = ""


KnownBlock = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | DocumentBlock
    | SearchResultBlock
    | ContainerUploadBlock
    | CompactionBlock
    | FallbackBlock
    | ServerBlock
)
Block = KnownBlock | UnknownBlock
"""Every block. The field `type` decides the class."""


def set_places(blocks: str | list[KnownBlock], root: bytes | JsonDict, path: Path) -> None:
    """Set the source of each of `blocks`, which are the list at `path` inside `root`."""
    # No block holds other values, so there is nothing to link inside one.
    if type(blocks) is list:
        for position, block in enumerate(blocks):
            force_setattr(block, SOURCE, (root, (*path, position)))


def read_blocks(found: Json) -> list[list[Block]]:
    """Read a list of blocks, of which this release may not know some; [] if it is no list."""
    return [[_read_block(block) for block in found]] if _json.is_array(found) else []


def _read_block(found: Json) -> Block:
    try:
        return cast("Block", msgspec.convert(found, KnownBlock))
    except CONVERT_ERRORS:
        kind = found.get("type") if _json.is_object(found) else None
        return UnknownBlock(type=kind if isinstance(kind, str) else "")
