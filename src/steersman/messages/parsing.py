"""Lines to messages.

Every JSON object becomes a message: one of a known class, or an `UnknownMessage`.
"""

from __future__ import annotations

import math
from typing import TypeGuard, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import (
    DECODE_ERRORS,
    SOURCE,
    WireStruct,
    by_tag,
    decoder_of,
    read,
    set_source,
    source_of,
)
from steersman.errors import UsageError
from steersman.messages.base import LINE, MessageWire, line_of
from steersman.messages.content import Block, TextBlock, ToolResultBlock, ToolUseBlock
from steersman.messages.limits import LimitMessage
from steersman.messages.notes import HookMessage, NoteMessage, TranscriptMessage
from steersman.messages.system import SystemMessage, SystemWire
from steersman.messages.tasks import TaskMessage
from steersman.messages.turns import Assistant, Result, StreamEvent, TurnMessage, User, set_line

__all__ = [
    "Message",
    "UnknownMessage",
    "format_cost",
    "from_json",
    "is_result",
    "parse_message",
    "text_of",
    "to_json",
    "tool_results_of",
    "tool_uses_of",
]

SMALLEST = 0.0001
"""Dollars; a smaller amount is shown as less than this."""


class UnknownMessage(MessageWire, frozen=True, kw_only=True):
    """A message that this release does not know; `raw` has the whole object."""

    # Fields in place of the properties: here the words do not follow from the class.
    type: str = ""  # pyright: ignore[reportIncompatibleMethodOverride]
    subtype: str | None = None  # pyright: ignore[reportIncompatibleMethodOverride]


KnownMessage = (
    TurnMessage
    | SystemMessage
    | NoteMessage
    | LimitMessage
    | TaskMessage
    | HookMessage
    | TranscriptMessage
)
Message = KnownMessage | UnknownMessage
"""Every message. The field `type` decides the class; for `system` messages, `subtype`."""

_CLASSES: tuple[type[WireStruct], ...] = get_args(KnownMessage)
_BY_TYPE = by_tag(cls for cls in _CLASSES if not issubclass(cls, SystemWire))
_BY_SUBTYPE = by_tag(cls for cls in _CLASSES if issubclass(cls, SystemWire))


class _Kind(Struct):
    type: str = ""
    subtype: str | None = None


_kind = msgspec.json.Decoder(_Kind)

_BY_BEGINNING = {b'{"type":"%s",' % tag.encode(): cls for tag, cls in _BY_TYPE.items()}
"""The CLI writes `type` first, so the first bytes of a line decide its class."""
LONGEST = max(map(len, _BY_BEGINNING))
STREAM_EVENT, ASSISTANT = b'{"type":"stream_even', b'{"type":"assistant",'
decode_stream_event = msgspec.json.Decoder(StreamEvent).decode
"""Decode a `stream_event` line strictly. The caller sets the source of the message."""
read_assistant = msgspec.json.Decoder(Assistant).decode
"""Decode an assistant line strictly. The caller calls `set_line` when the message is first read."""


def parse_message(line: bytes | JsonDict) -> Message:
    """Return the message on `line`, or in an object that was already decoded.

    Raises `UsageError` if it is not a JSON object, and nothing else.
    """
    if isinstance(line, dict):
        line = _json.dumps(line)
    try:
        beginning = line[:20]
        if beginning == STREAM_EVENT:
            # Most lines are of this type, and they hold no values that need a source.
            event = decode_stream_event(line)
            force_setattr(event, SOURCE, line)
            return event
        if beginning == ASSISTANT:
            message = read_assistant(line)
            set_line(message, line)
            return message
        cls = _BY_BEGINNING.get(line[: line.find(b",", 0, LONGEST) + 1])
        if cls is not None:
            return cast("Message", set_source(decoder_of(cls).decode(line), line))
    except DECODE_ERRORS:
        pass
    try:
        return cast("Message", read(_class_of(line), line))
    except _json.TooDeep:
        unreadable = UnknownMessage(type="too deep")
        force_setattr(unreadable, LINE, line)
        return set_source(unreadable, {})
    except ValueError:
        raise UsageError("line", line, "one JSON object") from None


def to_json(message: Message) -> bytes:
    """Return the line that `message` was decoded from, or else its fields as JSON."""
    line = line_of(message)
    return _json.dumps(_plain(message)) if line is None else line


def from_json(line: bytes) -> Message:
    """Return the message that `to_json` wrote, with equal fields and an equal `raw`."""
    return parse_message(line)


def _class_of(line: bytes) -> type[WireStruct]:
    try:
        kind = _kind.decode(line)
    except DECODE_ERRORS:
        kind = _loose_kind(_json.loads(line))
    if kind.type == "system":
        return _BY_SUBTYPE.get(kind.subtype or "", UnknownMessage)
    return _BY_TYPE.get(kind.type, UnknownMessage)


def _loose_kind(found: Json) -> _Kind:
    if not _json.is_object(found):
        raise ValueError("not a JSON object")
    given = [found.get(key) for key in ("type", "subtype")]
    kind, subtype = (each if isinstance(each, str) else None for each in given)
    return _Kind(kind or "", subtype)


def _plain(value: Json) -> Json:
    """Return the JSON value for `value`. A value that was read from JSON is returned unchanged."""
    if _json.is_array(value):
        return [_plain(each) for each in value]
    if _json.is_object(value):
        return {name: _plain(each) for name, each in value.items()}
    if not isinstance(value, WireStruct):
        return value
    if source_of(value) is not None:
        return value.raw
    config = value.__struct_config__
    tag = {config.tag_field: config.tag} if config.tag_field else {}
    names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    system = {"type": "system"} if isinstance(value, SystemWire) else {}
    return {**system, **tag, **{wire: _plain(getattr(value, name)) for wire, name in names}}


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
