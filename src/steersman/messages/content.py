"""Content blocks: the pieces a message is made of.

To add a block, write its class here and name it in `KnownBlock`.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from steersman import _json
from steersman._values import MISFITS, Wire

__all__ = [
    "Block",
    "ImageBlock",
    "RedactedThinkingBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
]


class TextBlock(Wire, frozen=True, kw_only=True, tag="text"):
    """Plain prose."""

    text: str = ""


class ThinkingBlock(Wire, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning, with the signature that proves it unedited."""

    thinking: str = ""
    signature: str = ""


class RedactedThinkingBlock(Wire, frozen=True, kw_only=True, tag="redacted_thinking"):
    """Reasoning that only the API can read."""

    data: str = ""


class ToolUseBlock(Wire, frozen=True, kw_only=True, tag="tool_use"):
    """The model asks for a tool."""

    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class ToolResultBlock(Wire, frozen=True, kw_only=True, tag="tool_result"):
    """What a tool gave back."""

    tool_use_id: str = ""
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None


class ImageBlock(Wire, frozen=True, kw_only=True, tag="image"):
    """A picture, inline or by reference."""

    source: dict[str, Any] = {}


class UnknownBlock(Wire, frozen=True, kw_only=True):
    """A block newer than this release; `raw` has it whole."""

    type: str = ""


KnownBlock = (
    TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock
)
Block = KnownBlock | UnknownBlock
"""Every block, told apart by `type`."""


def adopt_blocks(parent: Wire, blocks: object, *path: str) -> None:
    """Tell each of `blocks` that it stands at `path` inside `parent`."""
    if _json.is_array(blocks):
        for position, block in enumerate(blocks):
            block.came_from((parent, (*path, position)))


def read_blocks(found: Any) -> list[list[Block]]:
    """The blocks of a list with some that this release does not know; nothing if it is no list."""
    return [[_read_block(block) for block in found]] if _json.is_array(found) else []


def _read_block(found: Any) -> Block:
    try:
        return cast("Block", msgspec.convert(found, KnownBlock))
    except MISFITS:
        kind = found.get("type") if _json.is_object(found) else None
        return UnknownBlock(type=kind if isinstance(kind, str) else "")
