"""Journal entries as JSON and back, for files, web pages and other processes.

The form is that of a record in a journal file: see `journal.files`. A line of the CLI is embedded
unchanged, byte for byte, which takes a fifth of the time of decoding and encoding it.
Fields that this release does not know are kept: a later one may have written them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman._struct import DECODE_ERRORS
from steersman.errors import UsageError
from steersman.journal.entries import Entry, Kind
from steersman.journal.files import TORN, Header, Record, is_plain, is_text, line_of, read_line
from steersman.journal.redaction import MARK

Redact = Callable[[bytes], bytes]

# In Python 3.11 looking up a member of an enum takes thirty times as long as a global name.
LINES_OF_JSON = frozenset({Kind.MESSAGE, Kind.PARTIAL, Kind.BOOKKEEPING, Kind.CONTROL, Kind.SENT})
"""The kinds of entries whose line is an object of JSON that was decoded or written here."""

SHOWN = 60
"""How many characters of bad data an error shows: the whole may be long and private."""

_NAMES = frozenset({"seq", "at", "kind", "turns", "details", "frame", "text", "base64"})


class EntryEncoder:
    """Writes entries as JSON. Each writer has its own, because entries of one batch are alike."""

    def __init__(self, redact: Redact | None = None) -> None:
        """`redact` removes secrets from a line; it returns the same object if there are none."""
        self._redact = redact
        self._middle: tuple[tuple[float, Kind, tuple[str, ...]] | None, bytes] = (None, b"")

    def encode(self, entry: Entry) -> bytes:
        """Return `entry` as one line of JSON, with its newline; never raises.

        An entry that cannot be redacted or encoded has `unwritable` in its details.
        """
        line = entry.line
        try:
            if entry.kind in LINES_OF_JSON and not entry.details and self._is_as_it_came(entry):
                return b'{"seq":%d%b%b}\n' % (entry.seq, self._middle_of(entry), line)
            written = line_of(self._redacted(Record.of(entry)))
            return written if type(entry) is Entry else self._with_unknown(written, entry)
        except Exception as error:  # noqa: BLE001 - from the caller's details or redact; a sink never raises
            # An entry that cannot be redacted or encoded is not written in part.
            unwritable = {"unwritable": type(error).__name__}
            shown = MARK.encode() if line else b""
            return line_of(
                Record(entry.seq, entry.at, entry.kind.value, shown, entry.turns, unwritable)
            )

    def _is_as_it_came(self, entry: Entry) -> bool:
        """Whether the line may be embedded in a record unchanged."""
        line = entry.line
        is_clean = self._redact is None or self._redact(line) is line
        begins = line[:1] == b"{" and type(entry) is Entry
        return is_clean and begins and is_text(line) and is_plain(line)

    def _middle_of(self, entry: Entry) -> bytes:
        """Return the bytes between number and line, which are equal for entries of one batch."""
        key = (entry.at, entry.kind, entry.turns)
        if key != self._middle[0]:
            head = line_of(Record(0, entry.at, entry.kind.value, b"", entry.turns))
            self._middle = key, head.removeprefix(b'{"seq":0').removesuffix(b"}\n") + b',"frame":'
        return self._middle[1]

    def _with_unknown(self, written: bytes, entry: Entry) -> bytes:
        if not isinstance(entry, _EntryOfOther):
            return written
        unknown = _json.dumps(entry.unknown)
        shown = unknown if self._redact is None else self._redact(unknown)
        return written[:-2] + b"," + shown[1:] + b"\n"

    def _redacted(self, record: Record) -> Record:
        if self._redact is None:
            return record
        line, details = self._redact(record.line), record.details
        if details:
            known: JsonObject = _json.loads(self._redact(_json.dumps(details)))
            return replace(record, line=line, details=known)
        return record if line is record.line else replace(record, line=line)


_ENCODER = EntryEncoder()


def to_json(entry: Entry, *, session: str = "", redact: Redact | None = None) -> bytes:
    """Return `entry` as JSON, in the form of the journal file and without a newline.

    `session` becomes the first field, for readers of several sessions. Entries in memory hold what
    the CLI sent, secrets included: pass `redact=session.redacted` for what leaves the process.
    """
    encoder = _ENCODER if redact is None else EntryEncoder(redact)
    written = encoder.encode(entry)
    if session:
        return b'{"session":%b,%b' % (_json.dumps(session), written[1:-1])
    return written[:-1]


def from_json(data: bytes | str) -> Entry:
    """Return the entry that `to_json` wrote, or that is on a line of a journal file.

    Raises `UsageError` if `data` is no entry, or one of a kind that only a later release knows.
    """
    line = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    found = read_line(line.strip())
    if isinstance(found, Header) or found.kind == TORN:
        raise UsageError("data", shortened(data), "a journal entry as JSON")
    entry = found.entry
    if entry is None:
        hint = "a later release of steersman wrote it; update steersman"
        raise UsageError("kind", found.kind, "a kind of entry", hint=hint)
    unknown = _unknown_in(line)
    if not unknown:
        return entry
    return _EntryOfOther(
        entry.seq, entry.at, entry.kind, entry.line, entry.turns, entry.details, unknown=unknown
    )


class _EntryOfOther(Entry, kw_only=True):
    """An entry with fields that this release does not know."""

    unknown: JsonDict


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _unknown_in(line: bytes) -> JsonDict:
    try:
        names = _decode_fields(line).keys() - _NAMES
    except DECODE_ERRORS:
        names = _json.loads(line).keys() - _NAMES
    if not names:
        return {}
    return {name: value for name, value in _json.loads(line).items() if name in names}


def shortened(data: bytes | str) -> str:
    """Return the beginning of bad data, for an error."""
    text = data if isinstance(data, str) else bytes(data[: 4 * SHOWN]).decode("utf-8", "replace")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
