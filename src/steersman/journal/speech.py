"""What the model said, as far as the books of a session need it: whole messages stay lines.

Lines in; texts and ids out, read straight off them. Blocks are decoded when somebody looks.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from steersman.messages import Assistant, Block, parse_message

__all__ = ["LARGE", "Said", "Speech", "speech_on"]

LARGE = 32 * 1024
"""A line of this size is better decoded whole, once, than for its text here and again elsewhere."""


class Said:  # noqa: PLW1641 - no more hashable than the blocks
    """Lines with what the main agent said, and the blocks on them for whoever asks."""

    __slots__ = ("_blocks", "_lines")

    def __init__(self, lines: tuple[bytes, ...] = ()) -> None:
        self._lines = lines
        self._blocks: tuple[Block, ...] | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Every block, in order; decoded once."""
        if self._blocks is None:
            messages = map(parse_message, self._lines)
            spoken = (each for each in messages if isinstance(each, Assistant))
            self._blocks = tuple(block for each in spoken for block in each.content)
        return self._blocks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and self.blocks == other.blocks

    def __repr__(self) -> str:
        return f"Said({len(self._lines)} lines)"


# Structs that the garbage collector need not look at: one of each comes with every message.
class _Block(Struct, gc=False):
    type: str = ""
    text: str = ""


class _Body(Struct, gc=False):
    id: str = ""
    content: list[_Block] = []


class Speech(Struct, gc=False):
    """An assistant's message without tool calls, by the fields that count for the books."""

    message: _Body = msgspec.field(default_factory=_Body)
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    is_api_error_message: bool = False

    @property
    def is_of_main_agent(self) -> bool:
        """Whether it counts as the turn's text: errors of the API come as messages too."""
        return self.parent_tool_use_id is None and not self.is_api_error_message

    @property
    def texts(self) -> list[tuple[str, str]]:
        """The prose of each block, with the id of the message that it is part of."""
        body = self.message
        return [(body.id, block.text) for block in body.content if block.type == "text"]


_decode = msgspec.json.Decoder(Speech).decode


def speech_on(line: bytes) -> Speech | None:
    """What an `assistant` line says; `None` if it must be decoded whole: calls, size, shape."""
    if len(line) >= LARGE:
        return None
    try:
        speech = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    for block in speech.message.content:
        if block.type == "tool_use":
            return None
    return speech
