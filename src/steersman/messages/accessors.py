"""Functions that read text, tools and cost from a message of any class."""

from __future__ import annotations

import math
from typing import TypeGuard

from steersman import _json
from steersman.messages.content import Block, TextBlock, ToolResultBlock, ToolUseBlock
from steersman.messages.parsing import Message
from steersman.messages.turns import Assistant, Result, StreamEvent, User

__all__ = ["format_cost", "is_result", "text_of", "tool_results_of", "tool_uses_of"]

SMALLEST = 0.0001
"""Dollars; a smaller amount is shown as less than this."""


def text_of(message: Message) -> str:
    """Return the text of `message` without thinking and tools, or "" if it has none.

    For a result this is the final answer; for a partial message, the text that it adds.
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
    """Return the tool uses in `message`."""
    return [block for block in _blocks_of(message) if isinstance(block, ToolUseBlock)]


def tool_results_of(message: Message) -> list[ToolResultBlock]:
    """Return the tool results in `message`."""
    return [block for block in _blocks_of(message) if isinstance(block, ToolResultBlock)]


def is_result(message: Message) -> TypeGuard[Result]:
    """Whether `message` ends a turn."""
    return isinstance(message, Result)


def format_cost(usd: float | None) -> str:
    """Format an amount: `$0.0234`, `$12.50`, `$1,234.00`, or `unknown` for None or NaN."""
    if usd is None or not math.isfinite(usd):
        return "unknown"
    if usd < 0:
        return f"-{format_cost(-usd)}"
    if 0 < usd < SMALLEST:
        return f"<${SMALLEST}"
    # Below a dollar, cents are too coarse: an answer often costs less than one.
    return f"${usd:.4f}" if 0 < round(usd, 4) < 1 else f"${usd:,.2f}"


def _blocks_of(message: Message) -> list[Block]:
    if not isinstance(message, Assistant | User):
        return []
    content = message.content
    return content if _json.is_array(content) else [TextBlock(text=str(content))]
