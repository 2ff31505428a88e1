"""Journal entries ⇄ lines of a file.

A file has tracks, one for each CLI process: a header, then one record per line, each a JSON object.
The lines of the conversation are embedded unchanged. Works on bytes; `stores` keeps them.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field, replace

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._struct import DECODE_ERRORS
from steersman.errors import Described, UsageError
from steersman.journal.journal import Entry, Kind

__all__ = [
    "EXITED",
    "FORMAT",
    "INPUT_ENDED",
    "STDERR",
    "TORN",
    "Header",
    "Record",
    "Track",
    "is_plain",
    "is_text",
    "line_of",
    "read_line",
    "read_tracks",
]

FORMAT = 1

NEWLINE = ord("\n")

# Kinds that only occur in files: events of the channel that are not lines of the conversation.
STDERR = "stderr"
"""A part of stderr."""
INPUT_ENDED = "input_ended"
"""The host program closed the CLI's stdin."""
EXITED = "exited"
"""The CLI exited; `details` has its `status`."""
TORN = "torn"
"""A line of the file that cannot be read, such as the last one of a killed host program."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a track. Contains no secret and no path."""

    steersman: str = ""
    """The version of steersman that wrote the track."""
    cli: str = ""
    """The version of the CLI, if known."""
    options: tuple[str, ...] = ()
    """Flags that influence the conversation; a value that may contain a path is only a digest."""
    track: int = 0
    """The number of the CLI process, in order of their starts. A file may have another order."""
    format: int = FORMAT
    after: int | None = None
    """The number before the first of this track, if numbers continue from the track before it.

    `None` in a track of an earlier release, which numbers the entries of each session from 1.
    """


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a file: an entry of the journal, or an event that only occurs in files."""

    seq: int
    at: float
    kind: str
    """A value of `Kind`, one of the constants above, or one that a later release writes."""
    line: bytes = b""
    turns: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=JsonDict)

    @classmethod
    def of(cls, entry: Entry) -> Record:
        """Return the record of `entry`; its details must be plain values."""
        return cls(
            entry.seq, entry.at, entry.kind.value, entry.line, entry.turns, dict(entry.details)
        )

    @property
    def entry(self) -> Entry | None:
        """The journal entry of this record; `None` if its kind only occurs in files."""
        if self.kind not in _KINDS:
            return None
        return Entry(self.seq, self.at, Kind(self.kind), self.line, self.turns, self.details)


_KINDS = frozenset(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class Track:
    """The records of one CLI process."""

    header: Header
    records: tuple[Record, ...] = ()

    @property
    def is_torn(self) -> bool:
        """Whether the writer was killed in the middle of a line."""
        return bool(self.records) and self.records[-1].kind == TORN


# Writing


def line_of(written: Header | Record) -> bytes:
    """Return `written` as a line of a file, with its newline."""
    if isinstance(written, Header):
        fields = {"journal": written.format, "track": written.track, "steersman": written.steersman}
        if written.after is not None:
            fields["after"] = written.after
        return _json.dumps({**fields, "cli": written.cli, "options": written.options}) + b"\n"
    head = _json.dumps(_fields_of(written))
    if not written.line:
        return head + b"\n"
    name, value = _written(written.line, embeds=_is_strict(head))
    return head[:-1] + b',"' + name + b'":' + value + b"}\n"


def _fields_of(record: Record) -> JsonDict:
    fields: JsonDict = {"seq": record.seq, "at": record.at, "kind": record.kind}
    if record.turns:
        fields["turns"] = record.turns
    if record.details:
        fields["details"] = dict(record.details)
    return fields


def _written(line: bytes, *, embeds: bool) -> tuple[bytes, bytes]:
    """Return the field and the JSON for `line`: unchanged if possible, else text, else base64."""
    if embeds and line == line.strip() and b"\n" not in line and _is_strict(line):
        return b"frame", line
    try:
        return b"text", _json.dumps(line.decode())
    except UnicodeDecodeError:
        return b"base64", _json.dumps(base64.b64encode(line).decode())


def is_text(line: bytes) -> bool:
    """Whether `line` is UTF-8 without a newline and ends like a JSON object."""
    return (line.isascii() or _is_utf8(line)) and line[-1:] == b"}" and NEWLINE not in line


def is_plain(line: bytes) -> bool:
    """Whether `line` is JSON without escaped surrogates, which JSON readers treat differently."""
    try:
        _skip(line)
    except DECODE_ERRORS:
        return False
    return line.find(b"\\ud") < 0 and line.find(b"\\uD") < 0


_skip = msgspec.json.Decoder(msgspec.Raw).decode


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_strict(line: bytes) -> bool:
    """Whether every JSON reader accepts `line` and reads the same value."""
    try:
        line.decode()
        msgspec.json.decode(line)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        return False
    return True


# Reading


def read_tracks(data: bytes) -> list[Track]:
    """Return the tracks of a file, in the order in which their CLIs were started.

    A line that cannot be read becomes a record of kind `torn`. Raises `UsageError` if `data` is not
    a journal, or has a later format.
    """
    tracks: list[tuple[Header, list[Record]]] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        found = read_line(line)
        if isinstance(found, Header):
            tracks.append((_checked(found), []))
        elif tracks:
            tracks[-1][1].append(_placed(found, tracks[-1][1]))
        else:
            raise UsageError("journal file", line[:80], "a file that begins with a journal header")
    if not tracks:
        raise UsageError("journal file", data[:80], "a file that begins with a journal header")
    ordered = sorted(tracks, key=lambda each: each[0].track)
    return [Track(header, tuple(records)) for header, records in ordered]


def read_line(line: bytes) -> Header | Record:
    """Return the header or the record on one line of a file."""
    try:
        found = _decode(line)
    except DECODE_ERRORS:
        found = _read_loosely(line)
    if found.journal is not None:
        options = tuple(map(str, found.options))
        return Header(found.steersman, found.cli, options, found.track, found.journal, found.after)
    if not found.kind:
        return Record(0, 0.0, TORN, line)
    try:
        return Record(
            found.seq,
            found.at,
            found.kind,
            found.content(),
            tuple(map(str, found.turns)),
            found.details,
        )
    except (ValueError, binascii.Error):
        return Record(0, 0.0, TORN, line)


class _Line(msgspec.Struct, kw_only=True):
    """All fields of headers and records; fields of later formats are ignored."""

    journal: int | None = None
    steersman: str = ""
    cli: str = ""
    options: list[Json] = []
    track: int = 0
    after: int | None = None
    seq: int = 0
    at: float = 0.0
    kind: str = ""
    turns: list[Json] = []
    details: JsonDict = {}
    frame: msgspec.Raw = msgspec.Raw()
    text: str = ""
    base64: str = ""

    def content(self) -> bytes:
        """Return the embedded line of the conversation."""
        if self.base64:
            return base64.b64decode(self.base64, validate=True)
        return bytes(self.frame) or self.text.encode()


_decode = msgspec.json.Decoder(_Line).decode


def _read_loosely(line: bytes) -> _Line:
    """Decode a line that msgspec refuses, such as one with lone surrogates; empty if not JSON."""
    try:
        found = _json.loads(line)
    except ValueError:
        return _Line()
    if _json.is_object(found) and "frame" in found:
        found["text"] = _json.dumps(found.pop("frame")).decode()
    try:
        return msgspec.convert(found, _Line)
    except msgspec.ValidationError:
        return _Line()


def _checked(header: Header) -> Header:
    if header.format > FORMAT:
        raise UsageError(
            "journal file",
            Described(f"format {header.format}"),
            f"format {FORMAT}",
            hint="a later release of steersman wrote it; update steersman",
        )
    return header


def _placed(record: Record, before: list[Record]) -> Record:
    """Return `record`; a torn line, which has no number, gets the next one."""
    if record.kind != TORN or record.seq:
        return record
    return replace(record, seq=before[-1].seq + 1 if before else 1)
