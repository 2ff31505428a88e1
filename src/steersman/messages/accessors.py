"""What people look for in a message, whatever its class: words, tools, the end, the cost."""

from __future__ import annotations

import math
from typing import TypeGuard

from steersman import _json
from steersman.messages.content import Block, TextBlock, ToolResultBlock, ToolUseBlock
from steersman.messages.parsing import Message
from steersman.messages.turns import Assistant, Result, StreamEvent, User

__all__ = ["format_cost", "is_result", "text_of", "tool_results_of", "tool_uses_of"]

SMALLEST = 0.0001
"""Dollars; less than that is not written out."""


def text_of(message: Message) -> str:
    """The prose of `message`, without thinking and tools; empty if it is no kind that has any.

    Of a result it is the final answer, of a partial message the piece of text that it adds.
    """
    match message:
        case Assistant() | User():
            return "".join(
                block.text for block in _blocks_of(message) if isinstance(block, TextBlock)
            )
        case Result():
            return message.result or ""
        case StreamEvent(event={"delta": {"type": "text_delta", "text": str(text)}}):
            return text
        case _:
            return ""


def tool_uses_of(message: Message) -> list[ToolUseBlock]:
    """The tools that the model asks for in `message`."""
    return [block for block in _blocks_of(message) if isinstance(block, ToolUseBlock)]


def tool_results_of(message: Message) -> list[ToolResultBlock]:
    """What tools gave back in `message`."""
    return [block for block in _blocks_of(message) if isinstance(block, ToolResultBlock)]


def is_result(message: Message) -> TypeGuard[Result]:
    """Whether `message` ends a turn."""
    return isinstance(message, Result)


def format_cost(usd: float | None) -> str:
    """Dollars for people: `$0.0234`, `$12.50`, `$1,234.00`; `unknown` where there is no number."""
    if usd is None or not math.isfinite(usd):
        return "unknown"
    if usd < 0:
        return f"-{format_cost(-usd)}"
    if 0 < usd < SMALLEST:
        return f"<${SMALLEST}"
    # Below a dollar a cent is too coarse: an answer often costs a part of one.
    return f"${usd:.4f}" if 0 < round(usd, 4) < 1 else f"${usd:,.2f}"


def _blocks_of(message: Message) -> list[Block]:
    if not isinstance(message, Assistant | User):
        return []
    content = message.content
    return content if _json.is_array(content) else [TextBlock(text=str(content))]
