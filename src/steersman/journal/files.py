"""Journal entries ⇄ lines of a file.

A file has tracks, one for each life of a CLI: a header, then a record per line, each one a JSON
object. What the wire carried stands inside as it came. Knows bytes; where they are kept is not its
business.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field, replace

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._values import UNFIT
from steersman.errors import UsageError
from steersman.journal.entries import Entry, Kind

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

# Kinds that only a file knows: what a channel tells beside the lines of the conversation.
STDERR = "stderr"
"""A piece of stderr."""
INPUT_ENDED = "input_ended"
"""The host closed the CLI's stdin."""
EXITED = "exited"
"""The CLI is gone; `details` has its `status`."""
TORN = "torn"
"""A line of the file that cannot be read, such as the last one of a host that was killed."""


@dataclass(frozen=True, slots=True)
class Header:
    """What one needs to know before reading on. Holds no secret and no path."""

    steersman: str = ""
    """The version that wrote it."""
    cli: str = ""
    """The version of the CLI, where it was told."""
    options: tuple[str, ...] = ()
    """Flags that shaped the conversation; a value that may name a path is only a digest."""
    track: int = 0
    """Which life of a CLI this is; tracks may stand in another order than they began in."""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a file: an entry of the journal, or what only a file tells of."""

    seq: int
    at: float
    kind: str
    """A value of `Kind`, one of the words above, or one that a later release writes."""
    line: bytes = b""
    turns: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=JsonDict)

    @classmethod
    def of(cls, entry: Entry) -> Record:
        """The record of `entry`; its details must be plain values."""
        return cls(
            entry.seq, entry.at, entry.kind.value, entry.line, entry.turns, dict(entry.details)
        )

    @property
    def entry(self) -> Entry | None:
        """The entry that it tells of; `None` when its kind has no place in a journal."""
        if self.kind not in _KINDS:
            return None
        return Entry(self.seq, self.at, Kind(self.kind), self.line, self.turns, self.details)


_KINDS = frozenset(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class Track:
    """One life of a CLI."""

    header: Header
    records: tuple[Record, ...] = ()

    @property
    def is_torn(self) -> bool:
        """Whether the writer was stopped in the middle of a line."""
        return bool(self.records) and self.records[-1].kind == TORN


# Writing


def line_of(written: Header | Record) -> bytes:
    """The line of a file, with its newline."""
    if isinstance(written, Header):
        fields = {"journal": written.format, "track": written.track, "steersman": written.steersman}
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
    """How `line` stands in a record: as it is where it can, else as text, else as base64."""
    if embeds and line == line.strip() and b"\n" not in line and _is_strict(line):
        return b"frame", line
    try:
        return b"text", _json.dumps(line.decode())
    except UnicodeDecodeError:
        return b"base64", _json.dumps(base64.b64encode(line).decode())


def is_text(line: bytes) -> bool:
    """Whether `line` is one line of UTF-8, with nothing around it."""
    return (line.isascii() or _is_utf8(line)) and line[-1:] == b"}" and NEWLINE not in line


def is_plain(line: bytes) -> bool:
    """Whether `line` is JSON, and has none of the letters that readers do not agree on."""
    try:
        _skip(line)
    except UNFIT:
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
    """Whether every JSON reader agrees on `line`."""
    try:
        line.decode()
        msgspec.json.decode(line)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        return False
    return True


# Reading


def read_tracks(data: bytes) -> list[Track]:
    """The tracks of a file, in the order they began in.

    A line that cannot be read becomes a record of kind `torn`. Raises `UsageError` when this is no
    journal, or one of a later format.
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
    """What one line of a file says."""
    try:
        found = _decode(line)
    except UNFIT:
        found = _read_loosely(line)
    if found.journal is not None:
        options = tuple(map(str, found.options))
        return Header(found.steersman, found.cli, options, found.track, found.journal)
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
    """All fields of this format; those of a later one are passed over."""

    journal: int | None = None
    steersman: str = ""
    cli: str = ""
    options: list[Json] = []
    track: int = 0
    seq: int = 0
    at: float = 0.0
    kind: str = ""
    turns: list[Json] = []
    details: JsonDict = {}
    frame: msgspec.Raw = msgspec.Raw()
    text: str = ""
    base64: str = ""

    def content(self) -> bytes:
        """The line of the conversation that it carries."""
        if self.base64:
            return base64.b64decode(self.base64, validate=True)
        return bytes(self.frame) or self.text.encode()


_decode = msgspec.json.Decoder(_Line).decode


def _read_loosely(line: bytes) -> _Line:
    """For texts with lone surrogates, which msgspec does not read; empty if it is no record."""
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
            f"format {header.format}",
            f"format {FORMAT}",
            hint="a later steersman wrote it; update this one",
        )
    return header


def _placed(record: Record, before: list[Record]) -> Record:
    """A torn line has no number of its own: it gets the next one."""
    if record.kind != TORN or record.seq:
        return record
    return replace(record, seq=before[-1].seq + 1 if before else 1)
