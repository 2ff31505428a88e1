"""A session store in memory, and the summaries that a store keeps beside its sessions."""

from __future__ import annotations

import time

from steersman.compat._shapes.stored_sessions import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)
from steersman.transcripts import summary

Place = tuple[str, str]


def fold_session_summary(
    prev: SessionSummaryEntry | None, key: SessionKey, entries: list[SessionStoreEntry]
) -> SessionSummaryEntry:
    """Return the summary of a session after `entries`; `prev` is the one before them.

    `mtime` is left as it was, or 0: the store sets it, by its own clock.
    """
    folded = summary.fold_session_summary(prev, key, entries)
    if entries:
        folded["data"].setdefault("is_sidechain", False)
    return {**folded, "session_id": prev["session_id"]} if prev else folded


class InMemorySessionStore(SessionStore):
    """Keeps sessions in this process: for tests and trials. Entries are kept as they are given."""

    def __init__(self) -> None:
        self._parts: dict[Place, dict[str, list[SessionStoreEntry]]] = {}
        self._summaries: dict[Place, SessionSummaryEntry] = {}
        self._mtimes: dict[Place, int] = {}
        self._last = 0

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries to a session, or to a part of one."""
        place, subpath = _place(key), key.get("subpath") or ""
        self._parts.setdefault(place, {}).setdefault(subpath, []).extend(entries)
        if subpath:
            return
        # Two appends in one millisecond are two times, so that a list has an order.
        self._last = self._mtimes[place] = max(int(time.time() * 1000), self._last + 1)
        folded = fold_session_summary(self._summaries.get(place), key, entries)
        self._summaries[place] = {**folded, "mtime": self._last}

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries; None if the key was never written."""
        found = self._parts.get(_place(key), {}).get(key.get("subpath") or "")
        return None if found is None else list(found)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project, and when each was last written to."""
        return [
            {"session_id": session_id, "mtime": mtime}
            for (project, session_id), mtime in self._mtimes.items()
            if project == project_key
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of the sessions of a project."""
        return [
            {**found, "data": dict(found["data"])}
            for (project, _), found in self._summaries.items()
            if project == project_key
        ]

    async def delete(self, key: SessionKey) -> None:
        """Remove a session with its parts, or one part."""
        place, subpath = _place(key), key.get("subpath")
        if subpath:
            self._parts.get(place, {}).pop(subpath, None)
            return
        for kept in (self._parts, self._summaries, self._mtimes):
            kept.pop(place, None)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the parts of a session."""
        place = key["project_key"], key["session_id"]
        return [subpath for subpath in self._parts.get(place, {}) if subpath]

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """Return the entries of a key at once; an empty list if it was never written."""
        return list(self._parts.get(_place(key), {}).get(key.get("subpath") or "", []))

    @property
    def size(self) -> int:
        """The number of sessions, without their parts."""
        return sum("" in parts for parts in self._parts.values())

    def clear(self) -> None:
        """Forget everything."""
        for kept in (self._parts, self._summaries, self._mtimes):
            kept.clear()


def _place(key: SessionKey) -> Place:
    return key["project_key"], key["session_id"]
