"""Sessions in memory: for tests, and for programs that end with their conversations."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from steersman.stores.entry_json import (
    Place,
    chunks,
    decode,
    fold,
    lines_of,
    new_lines,
    place_of,
    read_project,
    session_of,
)
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)


@dataclass(slots=True)
class _Kept:
    """The entries of one key."""

    lines: list[bytes] = field(default_factory=list[bytes])
    uuids: set[str] = field(default_factory=set[str])
    mtime: int = 0
    summary: SessionSummaryEntry | None = None


class MemoryStore:
    """A `SessionStore` that keeps entries in this process, encoded: what you change stays yours.

    Several event loops may use it at once.
    """

    def __init__(self) -> None:
        self._projects: dict[str, dict[str, dict[str, _Kept]]] = {}
        self._lock = threading.Lock()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        place, lines = place_of(key), lines_of(entries)
        if not lines:
            return
        with self._lock:
            parts = self._projects.setdefault(place.project, {}).setdefault(place.session, {})
            kept = parts.setdefault(place.subpath, _Kept())
            fresh = new_lines(lines, kept.uuids)
            if not fresh:
                return
            mtime = max(int(time.time() * 1000), kept.mtime + 1)
            if not place.subpath:
                kept.summary = fold(kept.summary, place, [line.entry for line in fresh], mtime)
            kept.mtime = mtime
            kept.lines += [line.text for line in fresh]
            kept.uuids.update(line.uuid for line in fresh if line.uuid is not None)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        lines = self._lines(place_of(key))
        return None if lines is None else [decode(line) for line in lines]

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return [{"session_id": name, "mtime": kept.mtime} for name, kept in self._main(project_key)]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        rows = (kept.summary for _, kept in self._main(project_key))
        return [{**row, "data": dict(row["data"])} for row in rows if row is not None]

    async def delete(self, key: SessionKey) -> None:
        place = place_of(key)
        with self._lock:
            sessions = self._projects.get(place.project, {})
            if not place.subpath:
                sessions.pop(place.session, None)
            else:
                sessions.get(place.session, {}).pop(place.subpath, None)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        place = session_of(key)
        with self._lock:
            parts = self._projects.get(place.project, {}).get(place.session, {})
            return [subpath for subpath in parts if subpath]

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        for chunk in chunks(self._lines(place_of(key)) or ()):
            yield chunk

    async def positions(self, key: SessionKey) -> int:
        return len(self._lines(place_of(key)) or ())

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """Return the entries of a key at once; an empty list if it was never written."""
        return [decode(line) for line in self._lines(place_of(key)) or ()]

    @property
    def size(self) -> int:
        """The number of sessions, without their parts."""
        with self._lock:
            return sum(
                "" in parts for sessions in self._projects.values() for parts in sessions.values()
            )

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._projects.clear()

    def _lines(self, place: Place) -> list[bytes] | None:
        with self._lock:
            parts = self._projects.get(place.project, {}).get(place.session, {})
            kept = parts.get(place.subpath)
            return None if kept is None else list(kept.lines)

    def _main(self, project_key: str) -> list[tuple[str, _Kept]]:
        with self._lock:
            sessions = self._projects.get(read_project(project_key), {})
            return [(name, parts[""]) for name, parts in sessions.items() if "" in parts]
