"""Entries, snapshots and results of turns as JSON and back, for files, web pages and processes.

The form of an entry is that of a record in a journal file: see `journal.files`. A line of the CLI
is embedded unchanged, byte for byte, which takes a fifth of the time of decoding and encoding it.
Fields that this release does not know are kept: a later one may have written them. Snapshots and
results have them in `unknown`, also those of values inside: an object by name, a list by position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TypeVar

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._struct import CONVERT_ERRORS, DECODE_ERRORS
from steersman.errors import SteersmanError, UsageError
from steersman.journal.files import TORN, Header, Record, is_plain, is_text, line_of, read_line
from steersman.journal.journal import Entry, Kind
from steersman.journal.redaction import MARK
from steersman.journal.results import TurnResult
from steersman.journal.snapshot import SessionSnapshot
from steersman.journal.text import AssistantText
from steersman.messages.parsing import parse_message
from steersman.messages.parsing import to_json as message_to_json
from steersman.messages.turns import Result

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


T = TypeVar("T")


def snapshot_to_json(snapshot: SessionSnapshot) -> bytes:
    """Return `snapshot` as JSON."""
    return _written(snapshot, snapshot.unknown, {"unknown": None})


def snapshot_from_json(data: bytes | str) -> SessionSnapshot:
    """Return the snapshot that `snapshot_to_json` wrote. Raises `UsageError` if it is none."""
    found = _object(data, "a snapshot as JSON")
    snapshot = _converted(found, SessionSnapshot, data, "a snapshot as JSON")
    return replace(snapshot, unknown=_rest(found, _plain(snapshot)))


def result_to_json(result: TurnResult) -> bytes:
    """Return `result` as JSON.

    `said` has the main agent's messages and `result` the CLI's result message, as they came.
    `cause` has the code, the text and the plain fields of the error.
    """
    own = {
        "unknown": None,
        "text": result.text,
        "said": [_json.loads(line) for line in result.said.lines],
        "cause": None if result.cause is None else _cause_fields(result.cause),
        "result": None if result.result is None else _json.loads(message_to_json(result.result)),
    }
    return _written(result, result.unknown, own)


def result_from_json(data: bytes | str) -> TurnResult:
    """Return the result that `result_to_json` wrote. Raises `UsageError` if it is none."""
    wanted = "the result of a turn as JSON"
    found = _object(data, wanted)
    said, cause, last = found.get("said"), found.get("cause"), found.get("result")
    plain = {name: value for name, value in found.items() if name not in _OWN}
    result = _converted(plain, TurnResult, data, wanted)
    rest = _rest(plain, _plain(result))
    message = parse_message(_json.dumps(last)) if _json.is_object(last) else None
    return replace(
        result,
        said=AssistantText(tuple(map(_json.dumps, said)) if _json.is_array(said) else ()),
        cause=_read_cause(cause) if _json.is_object(cause) else None,
        result=message if isinstance(message, Result) else None,
        unknown=rest,
    )


_OWN = frozenset({"said", "cause", "result", "unknown"})
"""Fields of a result that are no plain values."""


# Plain values


def _written(value: object, unknown: JsonDict, own: JsonDict) -> bytes:
    found = {**_plain(value, own), **{name: each for name, each in own.items() if each is not None}}
    try:
        return _json.dumps(_merged(found, unknown))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError("value", type(value).__name__, f"values that are JSON: {error}") from None


def _plain(value: object, own: Mapping[str, object] = MappingProxyType({})) -> JsonDict:
    """Return the fields of a dataclass as plain values, except `own`."""
    skipped = {*own, *_OWN}
    return {
        each.name: msgspec.to_builtins(getattr(value, each.name), enc_hook=_as_dict)
        for each in fields(value)  # type: ignore[arg-type]  # always a dataclass
        if each.name not in skipped
    }


def _as_dict(value: object) -> object:
    if _json.is_mapping(value):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _rest(found: Json, known: Json) -> JsonDict:
    """Return the fields that `found` has and `known` has not, in objects at any depth."""
    if _json.is_sequence(found) and _json.is_sequence(known):
        pairs = {str(at): pair for at, pair in enumerate(zip(found, known, strict=False))}
    elif _json.is_object(found) and _json.is_object(known):
        pairs = {name: (value, known.get(name, _MISSING)) for name, value in found.items()}
    else:
        return {}
    rest = {
        name: value if other is _MISSING else _rest(value, other)
        for name, (value, other) in pairs.items()
    }
    return {name: value for name, value in rest.items() if pairs[name][1] is _MISSING or value}


_MISSING = object()


def _merged(value: Json, rest: JsonDict) -> Json:
    """Return `value` with what `_rest` has found beside it."""
    if not rest:
        return value
    if _json.is_sequence(value):
        return [_merged(each, _below(rest, str(at))) for at, each in enumerate(value)]
    if not _json.is_object(value):
        return value
    merged = {name: _merged(each, _below(rest, name)) for name, each in value.items()}
    return {**{name: each for name, each in rest.items() if name not in value}, **merged}


def _below(rest: JsonDict, name: str) -> JsonDict:
    found = rest.get(name)
    return found if _json.is_object(found) else {}


def _converted(found: JsonDict, cls: type[T], data: bytes | str, wanted: str) -> T:
    known = {name: value for name, value in found.items() if name != "unknown"}
    try:
        return msgspec.convert(known, cls)
    except CONVERT_ERRORS as error:
        raise UsageError("data", shortened(data), f"{wanted}: {error}") from None


def _object(data: bytes | str, wanted: str) -> JsonDict:
    line = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    try:
        found = _json.loads(line)
    except ValueError as error:
        raise UsageError("data", shortened(data), f"{wanted}: {error}") from None
    if not _json.is_object(found):
        raise UsageError("data", shortened(data), wanted)
    return found


# Causes


def _cause_fields(cause: SteersmanError) -> JsonDict:
    """Return code, text and plain fields of an error. Its evidence is part of the text."""
    plain = {
        # `Described` is a kind of `str`, which no encoder takes.
        name: str(value) if isinstance(value, str) else value
        for name, value in vars(cause).items()
        if (value is None or isinstance(value, str | int | float)) and not name.startswith("_")
    }
    return {"code": cause.code, "reason": str(cause), "fields": plain}


def _read_cause(found: JsonDict) -> SteersmanError:
    """Return the error; one of a class that this release does not know is a `SteersmanError`."""
    known, text = found.get("fields"), str(found.get("reason", ""))
    fields_of = dict(known) if _json.is_object(known) else {}
    cls = _by_code().get(str(found.get("code")), SteersmanError)
    error = SteersmanError(str(fields_of.pop("what", text)), hint=str(fields_of.pop("hint", "")))
    if cls is not SteersmanError:
        # Each class has other parameters; its fields are all that it is.
        rebuilt = cls.__new__(cls, text)
        rebuilt.__dict__.update(error.__dict__)
        error = rebuilt
    error.args = (text,)
    error.__dict__.update(fields_of)
    return error


def _by_code() -> dict[str, type[SteersmanError]]:
    found, waiting = dict[str, type[SteersmanError]](), [SteersmanError]
    while waiting:
        cls = waiting.pop()
        found.setdefault(cls.code, cls)
        waiting += cls.__subclasses__()
    return found
