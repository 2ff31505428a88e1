"""What all session stores share: keys that are checked, and entries as lines of JSON.

An entry is kept as its JSON text, not taken apart: the order of its keys, whole numbers of any size
and the difference between 1 and 1.0 stay. What is not ASCII is written as UTF-8; a lone surrogate,
which UTF-8 has not, as its escape.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from steersman import _json
from steersman._json import Json
from steersman.errors import UsageError
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionSummaryEntry,
)

CHUNK_SIZE = 1 << 20
"""Bytes of JSON after which `stream` gives a chunk."""
CHUNK_ENTRIES = 500
DEEPEST = 400
"""How deep an entry may be nested: what can be written must be readable, also on a deep stack."""
SHALLOW = f"a dict that is nested {DEEPEST} times at most"
PLAIN = "a dict of JSON values: strings, finite numbers, booleans, None, lists and dicts"

_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Place:
    """A `SessionKey` that was checked."""

    project: str
    session: str
    subpath: str = ""
    """Empty for the session itself."""

    @property
    def key(self) -> SessionKey:
        """The key that this was made from."""
        key = SessionKey(project_key=self.project, session_id=self.session)
        if self.subpath:
            key["subpath"] = self.subpath
        return key


class Line(NamedTuple):
    """An entry, encoded."""

    uuid: str | None
    text: bytes
    entry: SessionStoreEntry


def check_timeout(timeout: object) -> None:
    """Raise `UsageError` if a `timeout=` is no number of seconds."""
    if isinstance(timeout, int | float) and timeout is not True and 0 < timeout < math.inf:
        return
    raise UsageError("timeout", timeout, "a number of seconds above 0")


def place_of(key: SessionKey) -> Place:
    """Return a checked key. Raises `UsageError` for one that names nothing."""
    place = session_of(key)
    if "subpath" not in key or key["subpath"] is None:  # pyright: ignore[reportUnnecessaryComparison] - callers without types
        return place
    return Place(place.project, place.session, _named(key, "subpath"))


def session_of(key: SessionKey | SessionListSubkeysKey) -> Place:
    """Return the session of a key, without its subpath. Raises `UsageError` as `place_of`."""
    if not _json.is_mapping(key):
        raise UsageError("key", key, "a dict with project_key and session_id")
    return Place(_named(key, "project_key"), _named(key, "session_id"))


def read_project(project_key: str) -> str:
    """Return a project key that was checked."""
    return _named({"project_key": project_key}, "project_key")


def _named(key: Mapping[str, Any], name: str) -> str:
    found = key.get(name)
    if not isinstance(found, str) or not found:
        hint = "leave `subpath` out for the session itself" if name == "subpath" else ""
        raise UsageError(f"key[{name!r}]", found, "a text that is not empty", hint=hint)
    return found


def lines_of(entries: Sequence[SessionStoreEntry]) -> list[Line]:
    """Return entries encoded. Raises `UsageError` for one that is no JSON: none is then stored."""
    if not isinstance(entries, list | tuple):
        raise UsageError("entries", entries, "a list of dicts")
    return [_line(number, each) for number, each in enumerate(entries)]


def _line(number: int, entry: SessionStoreEntry) -> Line:
    if not _json.is_object(entry):
        raise UsageError(f"entries[{number}]", entry, "a dict")
    try:
        text = encode(entry)
    except RecursionError:
        text, allowed = b"", SHALLOW
    except (TypeError, ValueError):
        text, allowed = b"", PLAIN
    else:
        is_deep = text.count(b"{") + text.count(b"[") > DEEPEST and _is_too_deep(entry)
        allowed = SHALLOW if is_deep else ""
    if allowed:
        raise UsageError(f"entries[{number}]", entry, allowed)
    uuid = entry.get("uuid")
    known_by = uuid if isinstance(uuid, str) and uuid else None
    return Line(known_by, text, cast(SessionStoreEntry, entry))


def _is_too_deep(entry: Json) -> bool:
    level: list[Json] = [entry]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _parts(outer)]
    return bool(level)


def _parts(value: Json) -> list[Json]:
    inner: Iterable[Json] = value.values() if _json.is_object(value) else value
    return [each for each in inner if isinstance(each, dict | list | tuple)]


def encode(value: Json) -> bytes:
    """Return a JSON value as UTF-8 text on one line. Raises `TypeError` or `ValueError`."""
    try:
        return _write(value).encode()
    except ValueError:
        # A lone surrogate, or an infinite number, which JSON text has only as `1e999`.
        return _write_slowly(value).encode()


def _write_slowly(value: Json) -> str:
    if _json.is_object(value):
        fields = (f"{json.dumps(name)}:{_write_slowly(each)}" for name, each in value.items())
        return "{" + ",".join(fields) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_write_slowly, cast(Sequence[Json], value))) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, allow_nan=False)


def decode(text: bytes) -> SessionStoreEntry:
    """Return the entry of a line. Raises `ValueError` if it is none."""
    entry = _json.loads(text)
    if not _json.is_object(entry):
        raise ValueError("not a JSON object")
    return cast(SessionStoreEntry, entry)


def new_lines(lines: Iterable[Line], known: Collection[str]) -> list[Line]:
    """Return the lines that are to be stored: those whose uuid is not in `known`, each once.

    A line without a uuid is always new: the same title may be set again on purpose. A batch is
    stored whole or not at all, so sending it again after an error stores no such line twice.
    """
    fresh: list[Line] = []
    seen: set[str] = set()
    for line in lines:
        if line.uuid is not None:
            if line.uuid in known or line.uuid in seen:
                continue
            seen.add(line.uuid)
        fresh.append(line)
    return fresh


def fold(
    previous: SessionSummaryEntry | None, place: Place, entries: list[SessionStoreEntry], mtime: int
) -> SessionSummaryEntry:
    """Return the summary of a session with further entries, as of `mtime`."""
    from steersman.transcripts.summary import fold_session_summary  # noqa: PLC0415 - with a write

    summary = fold_session_summary(previous, place.key, entries)
    return {"session_id": place.session, "mtime": mtime, "data": summary["data"]}


def chunks(texts: Iterable[bytes]) -> Iterator[list[SessionStoreEntry]]:
    """Return entries in chunks of some size."""
    chunk: list[SessionStoreEntry] = []
    size = 0
    for text in texts:
        chunk.append(decode(text))
        size += len(text)
        if size >= CHUNK_SIZE or len(chunk) >= CHUNK_ENTRIES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
