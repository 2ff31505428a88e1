"""One line of a session file, read leniently: what is missing or malformed has its default.

Bytes in, values out. A line of an unknown kind, or one that is no JSON, is an entry too.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import force_setattr

from steersman import _json
from steersman._json import JsonDict
from steersman._struct import DECODE_ERRORS
from steersman.transcripts.keys import SessionStoreEntry

_LINE = "_line"
_DATA = "_data"
_MESSAGE = "_message"
_TORN = "_torn"


class _Kept:
    """Slots for what an entry was read from; msgspec allows none in a struct itself."""

    __slots__ = (_DATA, _LINE, _MESSAGE, _TORN)


class TranscriptEntry(_Kept, Struct, frozen=True, kw_only=True, rename="camel"):
    """A line of a session file. A field that is missing or malformed has its default."""

    type: str = ""
    """The kind of the entry; empty for a line that is no JSON object."""
    subtype: str = ""
    uuid: str = ""
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    """The parent across a compaction, where `parent_uuid` is None."""
    session_id: str = ""
    timestamp: str = ""
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    agent_id: str | None = None
    team_name: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    source_tool_assistant_uuid: str | None = field(name="sourceToolAssistantUUID", default=None)
    custom_title: str | None = None
    ai_title: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    tag: str | None = None
    relocated_cwd: str | None = None
    continued_in_session_id: str | None = None
    raw_message: Raw = field(name="message", default_factory=Raw)
    """The message as JSON, not decoded yet; see `message`."""

    @property
    def raw(self) -> bytes:
        """The line as it was read, without its newline."""
        line: bytes | None = getattr(self, _LINE, None)
        if line is None:
            line = _json.dumps(self.data)
            force_setattr(self, _LINE, line)
        return line

    @property
    def data(self) -> JsonDict:
        """The whole entry, decoded when it is first read; empty if the line is no JSON object."""
        data: JsonDict | None = getattr(self, _DATA, None)
        if data is None:
            data = _object(self.raw)
            force_setattr(self, _DATA, data)
        return data

    @property
    def message(self) -> JsonDict:
        """The message of a `user` or `assistant` entry; empty if there is none."""
        message: JsonDict | None = getattr(self, _MESSAGE, None)
        if message is None:
            message = _object(bytes(self.raw_message))
            force_setattr(self, _MESSAGE, message)
        return message

    @property
    def is_torn(self) -> bool:
        """Whether this is the last line of a file, and was not written to its end."""
        return getattr(self, _TORN, False)


_decode = msgspec.json.Decoder(TranscriptEntry).decode
_convert = msgspec.convert


def read_entry(line: bytes, *, is_last: bool = False) -> TranscriptEntry:
    """Return the entry on `line`; never raises.

    A line that is no JSON object gives an entry of type `""`, with the line in `raw`. With
    `is_last`, the line ended without a newline: if it is no JSON, it is torn.
    """
    try:
        entry = _decode(line)
    except DECODE_ERRORS:
        data = _object(line)
        entry = _read_leniently(data)
        force_setattr(entry, _TORN, is_last and not data)
    force_setattr(entry, _LINE, line)
    return entry


def entry_of(stored: SessionStoreEntry | JsonDict) -> TranscriptEntry:
    """Return the entry that a session store keeps as `stored`."""
    data: JsonDict = dict(stored)
    entry = _read_leniently(data)
    force_setattr(entry, _DATA, data)
    return entry


def _object(line: bytes) -> JsonDict:
    try:
        found = _json.loads(line)
    except ValueError:
        return {}
    return found if _json.is_object(found) else {}


def _read_leniently(data: JsonDict) -> TranscriptEntry:
    values: dict[str, Any] = {}
    for name, wire_name, kind in _FIELDS:
        found = data.get(wire_name)
        if isinstance(found, kind):
            values[name] = found
    entry = TranscriptEntry(**values)
    message = data.get("message")
    force_setattr(entry, _MESSAGE, message if _json.is_object(message) else {})
    return entry


_FIELDS: tuple[tuple[str, str, type], ...] = tuple(
    (each.name, each.encode_name, bool if each.type is bool else str)
    for each in msgspec.structs.fields(TranscriptEntry)
    if each.name != "raw_message"
)
