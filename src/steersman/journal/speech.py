"""What the main agent said in a turn, kept as the lines that it came on.

Lines in; texts and blocks out, for whoever asks: most never do.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from steersman._struct import DECODE_ERRORS
from steersman.messages.content import Block, TextBlock
from steersman.messages.parsing import parse_message
from steersman.messages.turns import Assistant

__all__ = ["PARAGRAPH", "Said"]

PARAGRAPH = "\n\n"
"""Stands between the texts of two messages of one turn."""


class Said:  # noqa: PLW1641 - no more hashable than the blocks
    """Complete messages of one turn, in order."""

    __slots__ = ("_blocks", "_lines")

    def __init__(self, lines: tuple[bytes, ...] = ()) -> None:
        self._lines = lines
        self._blocks: tuple[Block, ...] | None = None

    @property
    def text(self) -> str:
        """Everything that was written, with a paragraph between messages."""
        return PARAGRAPH.join(self._by_message())

    @property
    def answer(self) -> str:
        """The last message with a text."""
        return next(reversed(self._by_message()), "")

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

    def _by_message(self) -> list[str]:
        """The text of each message, whose blocks come as frames of their own with the same id."""
        joined: dict[str, list[str]] = {}
        for line in self._lines:
            message_id, texts = _prose_on(line)
            if texts:
                joined.setdefault(message_id, []).extend(texts)
        return [text for text in map("".join, joined.values()) if text]


# Structs that the garbage collector need not look at: there is one of each for every message.
class _Block(Struct, gc=False):
    type: str = ""
    text: str = ""


class _Body(Struct, gc=False):
    id: str = ""
    content: list[_Block] = []


class _Line(Struct, gc=False):
    message: _Body = msgspec.field(default_factory=_Body)


_decode = msgspec.json.Decoder(_Line).decode


def _prose_on(line: bytes) -> tuple[str, list[str]]:
    """The id of the message on `line`, and its prose, with nothing else decoded."""
    try:
        body = _decode(line).message
    except DECODE_ERRORS:
        return _prose_in(parse_message(line))
    return body.id, [block.text for block in body.content if block.type == "text"]


def _prose_in(message: object) -> tuple[str, list[str]]:
    if not isinstance(message, Assistant):
        return "", []
    blocks = message.content
    return message.message.id, [block.text for block in blocks if isinstance(block, TextBlock)]
