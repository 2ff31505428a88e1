"""The content blocks of one turn while they are streamed: text, thinking, and the input of tools.

`stream_event` messages make a block grow. The complete assistant message, which the CLI sends
before `content_block_stop`, replaces it. Blocks of subagents are ignored.
"""

from __future__ import annotations

from typing import Literal

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.journal.journal import Entry, Kind
from steersman.journal.partial_json import GrowingText, PartialJson
from steersman.messages.content import Block, TextBlock, ThinkingBlock, ToolUseBlock
from steersman.messages.turns import Assistant, StreamEvent

BlockState = Literal["growing", "complete", "dropped"]


class BlockUpdate:
    """One change of one block: it grew, it is complete, or it was dropped."""

    __slots__ = ("_block", "_growing", "_length", "delta", "number", "state")

    def __init__(
        self,
        number: int,
        state: BlockState,
        delta: str = "",
        *,
        block: Block | None = None,
        growing: _Growing | None = None,
    ) -> None:
        self.number = number
        """The number of the block in its turn, from 0; the same in all updates of one block."""
        self.state = state
        """`dropped`: the stream broke off. Discard what earlier updates showed of this block."""
        self.delta = delta
        """The new characters: text, thinking, or a part of the JSON of a tool's input."""
        self._block = block
        self._growing = growing
        self._length = 0 if growing is None else growing.length

    @property
    def is_complete(self) -> bool:
        """Whether the block is complete and will not change."""
        return self.state == "complete"

    @property
    def block(self) -> Block:
        """The block as of this update, built when it is first read.

        The input of a tool is parsed as far as it has arrived by the time of that first reading.
        """
        if self._block is None:
            assert self._growing is not None
            self._block = self._growing.block(self._length)
        return self._block

    def __repr__(self) -> str:
        return f"BlockUpdate({self.number}, {self.state!r}, {self.delta!r})"


class BlockStream:
    """Turns the entries of one turn into block updates; each block completes at most once."""

    def __init__(self) -> None:
        self._count = 0
        self._message_id = ""
        self._growing: dict[int, _Growing] = {}
        """The blocks of the current message, by the index that the API gave them."""

    def feed(self, entry: Entry) -> list[BlockUpdate]:
        """Return the updates that `entry`, the next one of the turn, causes; often none."""
        if entry.kind is Kind.SETTLED:
            return self._drop_from(0)
        if entry.kind not in (Kind.PARTIAL, Kind.MESSAGE):
            return []
        message = entry.message
        if isinstance(message, StreamEvent) and message.parent_tool_use_id is None:
            return self._on_event(message)
        if isinstance(message, Assistant) and message.parent_tool_use_id is None:
            return self._on_message(message)
        return []

    def _on_event(self, message: StreamEvent) -> list[BlockUpdate]:
        match message.event:
            case {"type": "message_start", "message": {"id": str(message_id)}}:
                return self._begin(message_id)
            case {"type": "content_block_start", "index": int(index), "content_block": begun}:
                self._growing[index] = _Growing(self._next_number(), begun)
            case {"type": "content_block_delta", "index": int(index), "delta": delta}:
                return self._grow(index, delta)
            case {"type": "message_stop"} if message.abandoned_blocks is not None:
                return self._drop_from(message.abandoned_blocks.get("from_block_index"))
            case _:
                pass
        return []

    def _begin(self, message_id: str) -> list[BlockUpdate]:
        """Begin another message, and drop the incomplete blocks of the last one."""
        dropped = self._drop_from(0)
        self._message_id = message_id
        self._growing = {}
        return dropped

    def _grow(self, index: int, delta: Json) -> list[BlockUpdate]:
        growing = self._growing.get(index)
        fields = delta if _json.is_object(delta) else {}
        text = fields.get(_DELTA_FIELDS.get(str(fields.get("type")), ""))
        if growing is None or growing.is_settled or not isinstance(text, str):
            return []
        growing.add(text)
        return [BlockUpdate(growing.number, "growing", text, growing=growing)] if text else []

    def _drop_from(self, index: object) -> list[BlockUpdate]:
        first = index if isinstance(index, int) else 0
        dropped: list[BlockUpdate] = []
        for at, growing in self._growing.items():
            if at >= first and not growing.is_settled:
                growing.is_settled = True
                if growing.length:
                    dropped.append(BlockUpdate(growing.number, "dropped", growing=growing))
        return dropped

    def _on_message(self, message: Assistant) -> list[BlockUpdate]:
        if message.is_api_error_message:
            return []
        dropped = [] if message.message.id == self._message_id else self._begin(message.message.id)
        return dropped + [self._complete(block) for block in message.content]

    def _complete(self, block: Block) -> BlockUpdate:
        growing = next((each for each in self._growing.values() if each.may_be(block)), None)
        if growing is None:
            return BlockUpdate(self._next_number(), "complete", _text_of(block), block=block)
        growing.is_settled = True
        return BlockUpdate(growing.number, "complete", growing.rest_of(block), block=block)

    def _next_number(self) -> int:
        self._count += 1
        return self._count - 1


_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}
"""The field that holds the text, by type of delta. Other deltas show in the complete block."""


class _Growing:
    """A block that is being streamed."""

    __slots__ = ("_fields", "_input", "_kind", "_text", "is_settled", "length", "number")

    def __init__(self, number: int, begun: Json) -> None:
        self.number = number
        self.length = 0
        """How many characters were streamed."""
        self.is_settled = False
        """Whether the block is complete or dropped."""
        self._fields: JsonDict = begun if _json.is_object(begun) else {}
        self._kind = self._fields.get("type")
        self._text = GrowingText()
        self._input = PartialJson()

    def add(self, delta: str) -> None:
        self.length += len(delta)
        if self._kind == "tool_use":
            self._input.feed(delta)
        else:
            self._text.append(delta)

    def block(self, length: int) -> Block:
        """Return the block as of `length` characters; the input of a tool is always the newest."""
        if self._kind == "tool_use":
            value = self._input.value
            return ToolUseBlock(
                id=str(self._fields.get("id", "")),
                name=str(self._fields.get("name", "")),
                input=value if _json.is_object(value) else {},
            )
        # A slice copies the text; the newest update, which is nearly always read, needs none.
        text = self._text.text if length == self.length else self._text.text[:length]
        return ThinkingBlock(thinking=text) if self._kind == "thinking" else TextBlock(text=text)

    def may_be(self, block: Block) -> bool:
        """Whether `block`, a complete one, can be this block."""
        if self.is_settled:
            return False
        if isinstance(block, ToolUseBlock):
            return self._kind == "tool_use" and self._fields.get("id") == block.id
        return self._kind == block.__struct_config__.tag

    def rest_of(self, block: Block) -> str:
        """Return the text of `block` that was not streamed; empty for a tool input that was."""
        text = _text_of(block)
        if isinstance(block, ToolUseBlock):
            return "" if self.length else text
        return text[self.length :] if text.startswith(self._text.text) else ""


def _text_of(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ThinkingBlock):
        return block.thinking
    return _json.dumps(block.input).decode() if isinstance(block, ToolUseBlock) else ""
