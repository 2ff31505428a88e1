"""The text of one turn, streamed and complete.

Partial messages give the text while it is written. A complete assistant message is authoritative
and adds what was never streamed. A message that is streamed again is not given out twice.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from steersman._struct import DECODE_ERRORS
from steersman.journal.journal import Entry, Kind
from steersman.messages.content import Block, TextBlock
from steersman.messages.parsing import parse_message
from steersman.messages.turns import Assistant, StreamEvent, User

# In Python 3.11 looking up a member of an enum takes thirty times as long as a global name.
PARTIAL, MESSAGE, SETTLED, RESTARTED = Kind.PARTIAL, Kind.MESSAGE, Kind.SETTLED, Kind.RESTARTED

PARAGRAPH = "\n\n"
"""Separates the text of two messages of one turn."""


class TextStream:
    """Turns the entries of one turn into chunks of text; joined, they are the turn's text."""

    def __init__(self) -> None:
        self._given = ""
        """What was given out of the current message, as of the last join."""
        self._streamed = ""
        """What was streamed of the current message; less than `_given` while a retry repeats it."""
        self._parts: list[str] = []
        """What was given out since the last join. Joining after each delta would be quadratic."""
        self._is_in_step = True
        """Whether all of the stream was given out, so that the next delta is the next chunk."""
        self._complete = ""
        """The text of the complete assistant messages that have the current message's id."""
        self._message_id = ""
        self._is_abandoned = False
        self._is_answered = False
        """Whether a tool of the current message has run, so that the CLI has saved the message."""
        self._has_given = False

    def feed(self, entry: Entry) -> str:
        """Return the text that `entry` adds; often empty."""
        if entry.kind is PARTIAL:
            return self._on_partial(_partial_on(entry))
        if entry.kind is SETTLED:
            # A lost CLI wrote this answer, and it was found in the transcript.
            return str(entry.details.get("text", ""))
        if entry.kind is RESTARTED:
            # The new CLI writes the last message again if it was not saved, complete or not.
            self._gather()
            self._is_abandoned = not self._is_answered
        if entry.kind is not MESSAGE:
            return ""
        message = entry.message
        if isinstance(message, Assistant):
            return self._on_message(message)
        if isinstance(message, User) and message.parent_tool_use_id is None:
            self._is_answered = True
        return ""

    def _on_partial(self, line: _Partial) -> str:
        if line.parent_tool_use_id is not None:
            return ""
        event, delta = line.event, line.event.delta
        if event.type == "content_block_delta":
            if delta.type == "text_delta" and delta.text is not None:
                return self._on_delta(delta.text)
        elif event.type == "message_start":
            if event.message.id is not None:
                self._begin(event.message.id)
        elif event.type == "message_stop":
            self._is_abandoned = line.abandoned_blocks is not None
        return ""

    def _on_delta(self, text: str) -> str:
        if not self._is_in_step:
            self._streamed += text
            return self._rest_of(self._streamed)
        if not text:
            return ""
        is_new_message = not self._given and not self._parts and self._has_given
        self._parts.append(text)
        self._has_given = True
        return PARAGRAPH + text if is_new_message else text

    def _gather(self) -> None:
        """Join the deltas that were given out."""
        if self._parts:
            self._given = self._streamed = self._given + "".join(self._parts)
            self._parts.clear()

    def _on_message(self, message: Assistant) -> str:
        if message.parent_tool_use_id is not None or message.is_api_error_message:
            return ""
        text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        if message.message.id != self._message_id:
            self._begin(message.message.id)
        self._gather()
        self._complete += text
        return self._rest_of(self._complete)

    def _begin(self, message_id: str) -> None:
        self._gather()
        self._streamed = self._complete = ""
        self._message_id = message_id
        if not self._is_abandoned:
            self._given = ""
        self._is_in_step = not self._given
        self._is_abandoned = self._is_answered = False

    def _rest_of(self, text: str) -> str:
        """Return the part of `text`, the current message so far, that was not given out yet."""
        if self._given.startswith(text):
            self._is_in_step = self._streamed == self._given
            return ""
        if text.startswith(self._given):
            chunk = text[len(self._given) :]
            is_new_message = not self._given and self._has_given
        else:
            # The retry wrote another text, and what was given out cannot be withdrawn.
            chunk, is_new_message = text, True
        self._given = text
        self._is_in_step = self._streamed == text
        self._has_given = True
        return PARAGRAPH + chunk if is_new_message else chunk


class AssistantText:  # noqa: PLW1641 - no more hashable than the blocks
    """The main agent's complete messages of one turn, kept as the lines that they came on.

    Decoded only when they are read: most results are never asked for their text.
    """

    __slots__ = ("_blocks", "lines")

    def __init__(self, lines: tuple[bytes, ...] = ()) -> None:
        self.lines = lines
        self._blocks: tuple[Block, ...] | None = None

    @property
    def text(self) -> str:
        """The text of all messages, with an empty line between two messages."""
        return PARAGRAPH.join(self._by_message())

    @property
    def answer(self) -> str:
        """The text of the last message that has one."""
        return next(reversed(self._by_message()), "")

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All content blocks, in order; decoded at the first reading."""
        if self._blocks is None:
            messages = map(parse_message, self.lines)
            spoken = (each for each in messages if isinstance(each, Assistant))
            self._blocks = tuple(block for each in spoken for block in each.content)
        return self._blocks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssistantText) and self.blocks == other.blocks

    def __repr__(self) -> str:
        return f"AssistantText({len(self.lines)} lines)"

    def _by_message(self) -> list[str]:
        """Return the text of each message. The CLI sends its blocks on several lines, same id."""
        joined: dict[str, list[str]] = {}
        for line in self.lines:
            message_id, texts = _prose_on(line)
            if texts:
                joined.setdefault(message_id, []).extend(texts)
        return [text for text in map("".join, joined.values()) if text]


# gc=False: there is one of each per line, and none can be part of a reference cycle.
class _Delta(Struct, frozen=True, gc=False):
    type: str = ""
    text: str | None = None


class _Started(Struct, frozen=True, gc=False):
    id: str | None = None


class _Event(Struct, frozen=True, gc=False):
    type: str = ""
    delta: _Delta = _Delta()
    message: _Started = _Started()


class _Partial(Struct, frozen=True, gc=False, tag_field="type", tag="stream_event"):
    """The fields of a `stream_event` line that the text depends on."""

    event: _Event = _Event()
    parent_tool_use_id: str | None = None
    abandoned_blocks: Any = None


_decode_partial = msgspec.json.Decoder(_Partial).decode


def _partial_on(entry: Entry) -> _Partial:
    try:
        return _decode_partial(entry.line)
    except DECODE_ERRORS:
        return _partial_in(entry.message)


def _partial_in(message: object) -> _Partial:
    """Return the fields of a message that does not have the usual types."""
    if not isinstance(message, StreamEvent):
        return _Partial()
    parent, abandoned = message.parent_tool_use_id, message.raw.get("abandoned_blocks")
    event = _Event()
    match message.event:
        case {"type": "message_start", "message": {"id": str(message_id)}}:
            event = _Event("message_start", message=_Started(message_id))
        case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
            event = _Event("content_block_delta", _Delta("text_delta", text))
        case {"type": "message_stop"}:
            event = _Event("message_stop")
        case _:
            pass
    return _Partial(event, parent, abandoned)


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
    """Return the message id and the text blocks on `line`; nothing else is decoded."""
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
