"""The API's stream events, which a `StreamEvent` carries.

Used by `StreamEvent.typed()` only; the text of a turn is read without these classes.
To add an event or a delta, write its class here and name it in its union.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast, get_args

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import CONVERT_ERRORS, Readers, WireStruct, by_tag, read_leniently


class TextDelta(WireStruct, frozen=True, kw_only=True, tag="text_delta"):
    """More text."""

    text: str = ""


class InputJsonDelta(WireStruct, frozen=True, kw_only=True, tag="input_json_delta"):
    """More of a tool's input, as incomplete JSON."""

    partial_json: str = ""


class CitationsDelta(WireStruct, frozen=True, kw_only=True, tag="citations_delta"):
    """Another citation of the text."""

    citation: JsonDict = {}


class ThinkingDelta(WireStruct, frozen=True, kw_only=True, tag="thinking_delta"):
    """More thinking."""

    thinking: str = ""


class SignatureDelta(WireStruct, frozen=True, kw_only=True, tag="signature_delta"):
    """The signature of the thinking."""

    signature: str = ""


class CompactionDelta(WireStruct, frozen=True, kw_only=True, tag="compaction_delta"):
    """More of a summary of earlier content."""

    content: str | None = None


class UnknownDelta(WireStruct, frozen=True, kw_only=True):
    """A delta that this release does not know; `raw` has the whole object."""

    type: str = ""


KnownDelta = (
    TextDelta | InputJsonDelta | CitationsDelta | ThinkingDelta | SignatureDelta | CompactionDelta
)
Delta = KnownDelta | UnknownDelta


class MessageStart(WireStruct, frozen=True, kw_only=True, tag="message_start"):
    """An API message begins; `message` has its first fields."""

    message: JsonDict = {}


class ContentBlockStart(WireStruct, frozen=True, kw_only=True, tag="content_block_start"):
    """A content block begins, empty."""

    index: int = 0
    content_block: JsonDict = {}


def read_delta(found: Json) -> list[Delta]:
    """Read a delta that this release may not know."""
    return [_read(_DELTAS, UnknownDelta, found)]


class ContentBlockDelta(WireStruct, frozen=True, kw_only=True, tag="content_block_delta"):
    """A content block grows."""

    READERS: ClassVar[Readers] = {"delta": read_delta}

    index: int = 0
    delta: KnownDelta = msgspec.field(default_factory=TextDelta)


class ContentBlockStop(WireStruct, frozen=True, kw_only=True, tag="content_block_stop"):
    """A content block is complete."""

    index: int = 0


class MessageDelta(WireStruct, frozen=True, kw_only=True, tag="message_delta"):
    """The stop reason, and the tokens used so far."""

    delta: JsonDict = {}
    usage: JsonDict = {}


class MessageStop(WireStruct, frozen=True, kw_only=True, tag="message_stop"):
    """The API message is complete."""


class Ping(WireStruct, frozen=True, kw_only=True, tag="ping"):
    """The API keeps the connection alive."""


class UnknownEvent(WireStruct, frozen=True, kw_only=True):
    """An event that this release does not know; `raw` has the whole object."""

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


def read_event(found: JsonDict) -> ApiEvent:
    """Read an event of the API; never raises."""
    return cast("ApiEvent", _read(_EVENTS, UnknownEvent, found))


def _read(
    classes: Mapping[str, type[WireStruct]], otherwise: type[WireStruct], found: Json
) -> Json:
    place = found if _json.is_object(found) else {}
    kind = place.get("type")
    cls = classes.get(kind, otherwise) if isinstance(kind, str) else otherwise
    try:
        return msgspec.convert(place, cls)
    except CONVERT_ERRORS:
        return read_leniently(cls, place)
