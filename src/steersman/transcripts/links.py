"""The part of a line that places it in a conversation. The rest of the line is not decoded."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import DECODE_ERRORS
from steersman.transcripts.entries import read_entry


class _Message(Struct, gc=False):
    id: str | None = None


class Link(Struct, rename="camel", gc=False):
    """The fields of an entry that place it in a conversation."""

    type: str = ""
    uuid: str = ""
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    timestamp: str = ""
    is_sidechain: bool = False
    is_meta: bool = False
    team_name: str | None = None
    message: _Message | None = field(default=None)

    @property
    def is_spoken(self) -> bool:
        """Whether this is a message of the user or of the model, and not an entry beside them."""
        return self.type in ("user", "assistant")

    @property
    def message_id(self) -> str | None:
        """The id that the API gave a message of the model. Entries of one message share it."""
        return self.message.id if self.type == "assistant" and self.message else None


class _Block(Struct, gc=False):
    type: str = ""


class _Content(Struct, gc=False):
    content: list[_Block] = []


class _Body(Struct, gc=False):
    message: _Content


_decode = msgspec.json.Decoder(Link).decode
_decode_body = msgspec.json.Decoder(_Body).decode


def read_link(line: bytes) -> Link | None:
    """Return the link of the entry on `line`; None if it has no uuid, or is no JSON object."""
    try:
        link = _decode(line)
    except DECODE_ERRORS:
        link = _read_leniently(line)
    return link if link.uuid else None


def has_tool_result(line: bytes) -> bool:
    """Whether the entry on `line` is a message with the result of a tool."""
    try:
        blocks = [each.type for each in _decode_body(line).message.content]
    except DECODE_ERRORS:
        blocks = _types_leniently(line)
    return "tool_result" in blocks


def _types_leniently(line: bytes) -> list[Json]:
    # The content of most prompts is a text, and none of a list.
    content = read_entry(line).message.get("content")
    blocks = content if _json.is_array(content) else []
    return [each.get("type") for each in blocks if _json.is_object(each)]


def _read_leniently(line: bytes) -> Link:
    try:
        found = _json.loads(line)
    except ValueError:
        return Link()
    data: JsonDict = found if _json.is_object(found) else {}
    message = data.get("message")
    message_id = message.get("id") if _json.is_object(message) else None
    return Link(
        type=_text(data.get("type")) or "",
        uuid=_text(data.get("uuid")) or "",
        parent_uuid=_text(data.get("parentUuid")),
        logical_parent_uuid=_text(data.get("logicalParentUuid")),
        timestamp=_text(data.get("timestamp")) or "",
        is_sidechain=data.get("isSidechain") is True,
        is_meta=data.get("isMeta") is True,
        team_name=_text(data.get("teamName")),
        message=_Message(id=_text(message_id)),
    )


def _text(found: object) -> str | None:
    return found if isinstance(found, str) else None
