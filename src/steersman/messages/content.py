"""Content blocks: the pieces a message is made of.

To add a block, write its class here (or in `server_tools`, if the API made it) and name it in
`KnownBlock`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import force_setattr

from steersman import _json
from steersman._json import JsonDict
from steersman._struct import CONVERT_ERRORS, SOURCE, Path, WireStruct, set_source
from steersman.messages.server_tools import ServerBlock

if TYPE_CHECKING:
    from steersman.messages.builtin import ToolInput

__all__ = [
    "Block",
    "CompactionBlock",
    "ContainerUploadBlock",
    "DocumentBlock",
    "FallbackBlock",
    "ImageBlock",
    "RedactedThinkingBlock",
    "SearchResultBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
]


class TextBlock(WireStruct, frozen=True, kw_only=True, tag="text"):
    """Plain prose."""

    text: str = ""
    citations: list[dict[str, Any]] | None = None


class ThinkingBlock(WireStruct, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning, with the signature that proves it unedited."""

    thinking: str = ""
    signature: str = ""


class RedactedThinkingBlock(WireStruct, frozen=True, kw_only=True, tag="redacted_thinking"):
    """Reasoning that only the API can read."""

    data: str = ""


class ToolUseBlock(WireStruct, frozen=True, kw_only=True, tag="tool_use"):
    """The model asks for a tool."""

    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}

    def typed(self) -> ToolInput | dict[str, Any]:
        """The input as the class of its tool, such as `BashInput`; `input` if it is not built in.

        What does not fit is its default there; `raw` of the typed input has it as it came.
        """
        # The classes of a hundred tools are not for those who never ask for one.
        from steersman.messages.builtin import typed_input  # noqa: PLC0415

        found = typed_input(self.name, self.input)
        return found if isinstance(found, dict) else set_source(found, (self, ("input",)))


class ToolResultBlock(WireStruct, frozen=True, kw_only=True, tag="tool_result"):
    """What a tool gave back."""

    tool_use_id: str = ""
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None


class ImageBlock(WireStruct, frozen=True, kw_only=True, tag="image"):
    """A picture, inline or by reference."""

    source: dict[str, Any] = {}


class DocumentBlock(WireStruct, frozen=True, kw_only=True, tag="document"):
    """A document, inline or by reference."""

    source: dict[str, Any] = {}
    title: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None


class SearchResultBlock(WireStruct, frozen=True, kw_only=True, tag="search_result"):
    """Something found, given to the model so that it can cite it."""

    source: str = ""
    title: str = ""
    content: list[dict[str, Any]] = []
    citations: dict[str, Any] | None = None


class ContainerUploadBlock(WireStruct, frozen=True, kw_only=True, tag="container_upload"):
    """A file put where the API runs code."""

    file_id: str = ""


class CompactionBlock(WireStruct, frozen=True, kw_only=True, tag="compaction"):
    """The API summed up what was said before."""

    content: str | None = None


class FallbackBlock(WireStruct, frozen=True, kw_only=True, tag="fallback"):
    """From here on another model answers; `raw` has the whole."""


class UnknownBlock(WireStruct, frozen=True, kw_only=True):
    """A block newer than this release; `raw` has it whole."""

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
"""Every block, told apart by `type`."""


def set_places(blocks: str | list[KnownBlock], root: bytes | JsonDict, path: Path) -> None:
    """Set the source of each of `blocks`, which are the list at `path` inside `root`."""
    # No block holds other values, so there is nothing to link inside one.
    if type(blocks) is list:
        for position, block in enumerate(blocks):
            force_setattr(block, SOURCE, (root, (*path, position)))


def read_blocks(found: Any) -> list[list[Block]]:
    """The blocks of a list with some that this release does not know; nothing if it is no list."""
    return [[_read_block(block) for block in found]] if _json.is_array(found) else []


def _read_block(found: Any) -> Block:
    try:
        return cast("Block", msgspec.convert(found, KnownBlock))
    except CONVERT_ERRORS:
        kind = found.get("type") if _json.is_object(found) else None
        return UnknownBlock(type=kind if isinstance(kind, str) else "")
