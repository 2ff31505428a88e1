"""The API's own events, inside a `StreamEvent`: an answer piece by piece.

Read when somebody asks by `StreamEvent.typed()`; the text of a turn needs none of it.
To add an event or a delta, write its class here and name it in its union.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast, get_args

import msgspec

from steersman import _json
from steersman._struct import CONVERT_ERRORS, Readers, WireStruct, by_tag, read_leniently

__all__ = [
    "ApiEvent",
    "CitationsDelta",
    "CompactionDelta",
    "ContentBlockDelta",
    "ContentBlockStart",
    "ContentBlockStop",
    "Delta",
    "InputJsonDelta",
    "MessageDelta",
    "MessageStart",
    "MessageStop",
    "Ping",
    "SignatureDelta",
    "TextDelta",
    "ThinkingDelta",
    "UnknownDelta",
    "UnknownEvent",
    "read_event",
]


class TextDelta(WireStruct, frozen=True, kw_only=True, tag="text_delta"):
    """More prose."""

    text: str = ""


class InputJsonDelta(WireStruct, frozen=True, kw_only=True, tag="input_json_delta"):
    """More of a tool's input, as JSON that is not whole yet."""

    partial_json: str = ""


class CitationsDelta(WireStruct, frozen=True, kw_only=True, tag="citations_delta"):
    """One more place that the prose refers to."""

    citation: dict[str, Any] = {}


class ThinkingDelta(WireStruct, frozen=True, kw_only=True, tag="thinking_delta"):
    """More reasoning."""

    thinking: str = ""


class SignatureDelta(WireStruct, frozen=True, kw_only=True, tag="signature_delta"):
    """The signature under the reasoning."""

    signature: str = ""


class CompactionDelta(WireStruct, frozen=True, kw_only=True, tag="compaction_delta"):
    """More of a summary of what was said before."""

    content: str | None = None


class UnknownDelta(WireStruct, frozen=True, kw_only=True):
    """A piece newer than this release; `raw` has it whole."""

    type: str = ""


KnownDelta = (
    TextDelta | InputJsonDelta | CitationsDelta | ThinkingDelta | SignatureDelta | CompactionDelta
)
Delta = KnownDelta | UnknownDelta


class MessageStart(WireStruct, frozen=True, kw_only=True, tag="message_start"):
    """An answer begins; this is its head."""

    message: dict[str, Any] = {}


class ContentBlockStart(WireStruct, frozen=True, kw_only=True, tag="content_block_start"):
    """A block begins, empty."""

    index: int = 0
    content_block: dict[str, Any] = {}


def read_delta(found: Any) -> list[Delta]:
    """Read a piece that may be newer than this release."""
    return [_read(_DELTAS, UnknownDelta, found)]


class ContentBlockDelta(WireStruct, frozen=True, kw_only=True, tag="content_block_delta"):
    """A block grows."""

    READERS: ClassVar[Readers] = {"delta": read_delta}

    index: int = 0
    delta: KnownDelta = msgspec.field(default_factory=TextDelta)


class ContentBlockStop(WireStruct, frozen=True, kw_only=True, tag="content_block_stop"):
    """A block is whole."""

    index: int = 0


class MessageDelta(WireStruct, frozen=True, kw_only=True, tag="message_delta"):
    """Why the answer ends, and the tokens so far."""

    delta: dict[str, Any] = {}
    usage: dict[str, Any] = {}


class MessageStop(WireStruct, frozen=True, kw_only=True, tag="message_stop"):
    """The answer is whole."""


class Ping(WireStruct, frozen=True, kw_only=True, tag="ping"):
    """The API is still there."""


class UnknownEvent(WireStruct, frozen=True, kw_only=True):
    """An event newer than this release; `raw` has it whole."""

    type: str = ""


KnownEvent = (
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | MessageDelta
    | MessageStop
    | Ping
)
ApiEvent = KnownEvent | UnknownEvent

_EVENTS = by_tag(get_args(KnownEvent))
_DELTAS = by_tag(get_args(KnownDelta))


def read_event(found: dict[str, Any]) -> ApiEvent:
    """Read an event of the API; never raises."""
    return cast("ApiEvent", _read(_EVENTS, UnknownEvent, found))


def _read(classes: Mapping[str, type[WireStruct]], otherwise: type[WireStruct], found: Any) -> Any:
    place = found if _json.is_object(found) else {}
    kind = place.get("type")
    cls = classes.get(kind, otherwise) if isinstance(kind, str) else otherwise
    try:
        return msgspec.convert(place, cls)
    except CONVERT_ERRORS:
        return read_leniently(cls, place)
