"""The flight recorder: one file for each error, with what happened before it.

Plain values in, a file out. `redact` removes the secrets that the session was given. Text that
still looks like a secret is redacted too, and the file contains how often.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman.errors import SteersmanError
from steersman.journal import Entry, Kind
from steersman.journal.redaction import MARK, SHAPES
from steersman.journal.state import StateChange

LAST_FRAMES = 200
"""How many lines of each direction are kept."""
LAST_PARTIALS = 50
"""How many partial messages are kept, with their times and sizes only."""
LONGEST_FRAME = 4000
"""The maximum length of a line. Of a longer one only the beginning and the size are kept."""
DEEPEST = 100
"""How deeply a line may be nested. Of a deeper one only the beginning and the size are kept."""
LONGEST_STDERR = 16_000
KEPT_FILES = 20
"""How many files are kept, so that a CLI that crashes repeatedly does not fill the disk."""
PREFIX = "flight-"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightRecord:
    """The contents of a flight record. Has the names of options, never their values."""

    error: BaseException | None = None
    """The error that is the reason for the record; `None` if there is none."""
    session_id: str | None = None
    entries: Sequence[Entry] = ()
    """The end of the journal, from which the last lines of both directions are taken."""
    states: Iterable[StateChange] = ()
    stderr_tail: str = ""
    options: Iterable[str] = ()
    """The names of the options that were set."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The versions of steersman and the CLI; those of Python and the platform are added."""
    notes: JsonObject = field(default_factory=JsonDict)
    """Additional plain values."""
    redact: Callable[[str], str] = str
    """Removes known secrets from a text; applied to every text of the record."""


def record(
    directory: str | os.PathLike[str], flight: FlightRecord, *, now: float | None = None
) -> Path | None:
    """Write `flight` to a new file in `directory`, which is created if necessary.

    Only the owner can read the file. Returns its path, or `None` if it could not be written: the
    recorder never raises. Removes older flight records if there are more than 20.
    """
    at = time.time() if now is None else now
    try:
        content, found = _without_secrets(_bundle(flight, at), flight.redact)
        data = _json.dumps({**content, "redacted": found})
        folder = Path(directory)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{PREFIX}{_stamp(at)}-{os.getpid()}-{time.monotonic_ns():x}.json"
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data + b"\n")
        _tidy(folder)
    except Exception:  # noqa: BLE001 - an error of the values or the disk must not hide the recorded error
        return None
    return path


def _bundle(flight: FlightRecord, at: float) -> JsonDict:
    return {
        "flight_record": 1,
        "at": at,
        "error": _error(flight.error),
        "session_id": flight.session_id,
        "versions": {
            **flight.versions,
            "python": platform.python_version(),
            "platform": f"{sys.platform} {platform.machine()} {platform.release()}",
        },
        "options": sorted(flight.options),
        "states": [
            {"at": each.at, "before": each.before, "after": each.after} for each in flight.states
        ],
        "stderr_tail": flight.stderr_tail[-LONGEST_STDERR:],
        "received": _frames(each for each in flight.entries if each.kind in RECEIVED),
        "pieces": [_partial(each) for each in flight.entries if each.kind is Kind.PARTIAL][
            -LAST_PARTIALS:
        ],
        "sent": _frames(each for each in flight.entries if each.kind is Kind.SENT),
        "events": [_event(each) for each in flight.entries if not each.line][-LAST_FRAMES:],
        "notes": dict(flight.notes),
    }


RECEIVED = frozenset({Kind.MESSAGE, Kind.BOOKKEEPING, Kind.CONTROL, Kind.NOISE, Kind.OVERSIZE})
"""The kinds of entries that are complete lines of the CLI."""


def _error(error: BaseException | None) -> JsonDict | None:
    if error is None:
        return None
    fields: JsonDict = {"type": type(error).__name__, "text": str(error)}
    if isinstance(error, SteersmanError):
        fields["code"] = error.code
    if error.__cause__ is not None:
        fields["cause"] = _error(error.__cause__)
    return fields


def _frames(entries: Iterable[Entry]) -> list[JsonDict]:
    return [_frame(entry) for entry in list(entries)[-LAST_FRAMES:]]


def _frame(entry: Entry) -> JsonDict:
    fields: JsonDict = {"seq": entry.seq, "at": entry.at, "kind": entry.kind.value}
    if len(entry.line) <= LONGEST_FRAME:
        with suppress(ValueError):
            frame = _json.loads(entry.line)
            if not _is_deep(frame):
                return {**fields, "frame": frame}
    head = entry.line[:LONGEST_FRAME].decode("utf-8", "replace")
    return {**fields, "size": len(entry.line), "head": head}


def _is_deep(value: Json) -> bool:
    """Whether `value` is nested so deeply that functions that call themselves may fail on it."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            if _json.is_object(each) or _json.is_array(each)
            for inner in (each.values() if _json.is_object(each) else each)
        ]
    return bool(level)


def _partial(entry: Entry) -> JsonDict:
    """Return time and size only: a key that is split over two deltas cannot be recognised."""
    return {"seq": entry.seq, "at": entry.at, "size": len(entry.line)}


def _event(entry: Entry) -> JsonDict:
    fields: JsonDict = {"seq": entry.seq, "at": entry.at, "kind": entry.kind.value}
    if entry.turns:
        fields["turns"] = entry.turns
    return {**fields, **dict(entry.details)}


# Secrets


def _without_secrets(value: Json, redact: Callable[[str], str]) -> tuple[Json, int]:
    """Return `value` without secrets, and the number of texts that looked like a key."""
    if isinstance(value, str):
        return SHAPES.subn(MARK, redact(value))
    if _json.is_object(value):
        cleaned = {
            redact(str(name)): _without_secrets(each, redact) for name, each in value.items()
        }
        return {name: each for name, (each, _) in cleaned.items()}, _count(cleaned.values())
    if _json.is_sequence(value):
        items = [_without_secrets(each, redact) for each in value]
        return [each for each, _ in items], _count(items)
    return value, 0


def _count(cleaned: Iterable[tuple[Json, int]]) -> int:
    return sum(found for _, found in cleaned)


# Files


def _stamp(at: float) -> str:
    """Return the time as text that sorts in the order of the times."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))


def _tidy(folder: Path) -> None:
    for old in sorted(folder.glob(f"{PREFIX}*.json"))[:-KEPT_FILES]:
        with suppress(OSError):
            old.unlink()
