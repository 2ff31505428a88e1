"""The words of one turn as they are written.

Pieces come from stream events; the complete message settles what was said, and fills in what was
never streamed. A stream that broke off and began anew is not told twice.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from steersman._values import UNFIT
from steersman.journal.entries import Entry, Kind
from steersman.messages.content import Block, TextBlock
from steersman.messages.parsing import parse_message
from steersman.messages.turns import Assistant, StreamEvent

__all__ = ["PARAGRAPH", "AssistantText", "TextStream"]

PARAGRAPH = "\n\n"
"""Stands between the texts of two messages of one turn."""


class TextStream:
    """Turns a turn's entries into chunks of text; joined they are the turn's text."""

    def __init__(self) -> None:
        self._told = ""
        """What was given out of the message being written now."""
        self._seen = ""
        """What the stream has brought of it; less than `_told` while a broken one begins anew."""
        self._pieces: list[str] = []
        """What was given out since `_told` was last put together: joining each is quadratic."""
        self._is_in_step = True
        """Whether what was seen is what was told, so that the next piece is the next chunk."""
        self._complete = ""
        """What its complete frames have confirmed."""
        self._message_id = ""
        self._is_abandoned = False
        self._has_told = False

    def feed(self, entry: Entry) -> str:
        """The next chunk, which is often empty."""
        if entry.kind is Kind.SETTLED:
            # It was said to another CLI, and read in what that one had written down.
            return str(entry.details.get("text", ""))
        if entry.kind is Kind.RESTARTED:
            # A message that was not complete is written anew.
            self._gather()
            self._is_abandoned = self._seen != self._complete
        if entry.kind not in (Kind.PARTIAL, Kind.MESSAGE):
            return ""
        message = entry.message
        if isinstance(message, StreamEvent):
            return self._on_event(message)
        if isinstance(message, Assistant):
            return self._on_message(message)
        return ""

    def _on_event(self, message: StreamEvent) -> str:
        if message.parent_tool_use_id is not None:
            return ""
        match message.event:
            case {"type": "message_start", "message": {"id": str(message_id)}}:
                self._begin(message_id)
            case {
                "type": "content_block_delta",
                "delta": {"type": "text_delta", "text": str(text)},
            }:
                return self._on_piece(text)
            case {"type": "message_stop"}:
                self._is_abandoned = "abandoned_blocks" in message.raw
            case _:
                pass
        return ""

    def _on_piece(self, text: str) -> str:
        if not self._is_in_step:
            self._seen += text
            return self._tell(self._seen)
        if not text:
            return ""
        is_new_message = not self._told and not self._pieces and self._has_told
        self._pieces.append(text)
        self._has_told = True
        return PARAGRAPH + text if is_new_message else text

    def _gather(self) -> None:
        """Put together what was told in pieces."""
        if self._pieces:
            self._told = self._seen = self._told + "".join(self._pieces)
            self._pieces.clear()

    def _on_message(self, message: Assistant) -> str:
        if message.parent_tool_use_id is not None or message.is_api_error_message:
            return ""
        text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        if message.message.id != self._message_id:
            self._begin(message.message.id)
        self._gather()
        self._complete += text
        return self._tell(self._complete)

    def _begin(self, message_id: str) -> None:
        self._gather()
        self._seen = self._complete = ""
        self._message_id = message_id
        if not self._is_abandoned:
            self._told = ""
        self._is_in_step = not self._told
        self._is_abandoned = False

    def _tell(self, text: str) -> str:
        """What of `text`, the message up to now, was not given out yet."""
        if self._told.startswith(text):
            self._is_in_step = self._seen == self._told
            return ""
        if text.startswith(self._told):
            chunk = text[len(self._told) :]
            is_new_message = not self._told and self._has_told
        else:
            # The stream began anew and says something else: what was told cannot be taken back.
            chunk, is_new_message = text, True
        self._told = text
        self._is_in_step = self._seen == text
        self._has_told = True
        return PARAGRAPH + chunk if is_new_message else chunk


class AssistantText:  # noqa: PLW1641 - no more hashable than the blocks
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
        return isinstance(other, AssistantText) and self.blocks == other.blocks

    def __repr__(self) -> str:
        return f"AssistantText({len(self._lines)} lines)"

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
    except UNFIT:
        return _prose_in(parse_message(line))
    return body.id, [block.text for block in body.content if block.type == "text"]


def _prose_in(message: object) -> tuple[str, list[str]]:
    if not isinstance(message, Assistant):
        return "", []
    blocks = message.content
    return message.message.id, [block.text for block in blocks if isinstance(block, TextBlock)]
