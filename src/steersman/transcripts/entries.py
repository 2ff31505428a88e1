"""What is stored: entries, and the messages, subagents and sessions that they make.

A line is read leniently: what is missing or malformed has its default, and a line of an unknown
kind, or one that is no JSON, is an entry too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw, Struct
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
    source_tool_assistant_uuid: str | None = msgspec.field(
        name="sourceToolAssistantUUID", default=None
    )
    custom_title: str | None = None
    ai_title: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    tag: str | None = None
    relocated_cwd: str | None = None
    continued_in_session_id: str | None = None
    raw_message: Raw = msgspec.field(name="message", default_factory=Raw)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session, as a list shows it."""

    session_id: str
    summary: str
    """The title, or what stands for one: the title that was given or that the CLI wrote, the last
    prompt, a summary, or the first prompt."""
    last_modified: int
    """Milliseconds since the epoch."""
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None
    """Milliseconds since the epoch."""
    archived: bool = False
    expires: int | None = None
    """When the CLI will delete the session, in milliseconds since the epoch; None if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """A subagent of a session."""

    agent_id: str
    agent_type: str | None = None
    description: str | None = None
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None
    subpath: str = ""
    """Where its entries are, such as `subagents/agent-<id>`."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a stored conversation; decoded when it is read."""

    entry: TranscriptEntry = field(repr=False)
    """The line of the session file."""
    session_id: str
    parent_tool_use_id: str | None = None
    """For a message of a subagent: the tool call that started the subagent."""
    parent_agent_id: str | None = None
    """For a message of a subagent that another subagent started: the id of that one."""

    @property
    def type(self) -> str:
        """`user`, `assistant` or `system`."""
        return self.entry.type

    @property
    def uuid(self) -> str:
        """The id of the message."""
        return self.entry.uuid

    @property
    def message(self) -> JsonDict:
        """The message in the shape of the Messages API: `role`, `content` and others."""
        return self.entry.message

    @property
    def timestamp(self) -> str:
        """When the CLI wrote the message, in ISO 8601; empty if that is not known."""
        return self.entry.timestamp

    @property
    def is_meta(self) -> bool:
        """Whether the CLI wrote this message for the model, and does not show it to users."""
        return self.entry.is_meta

    @property
    def is_compact_summary(self) -> bool:
        """Whether this message is the summary that a compaction left."""
        return self.entry.is_compact_summary

    @property
    def raw(self) -> bytes:
        """The line of the session file."""
        return self.entry.raw
