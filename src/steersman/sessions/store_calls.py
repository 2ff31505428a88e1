"""Calls the methods of a store, some of which may be missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import cast

from steersman._json import JsonDict
from steersman.errors import SessionNotFound, UsageError
from steersman.ports import SessionStore, SupportsStream
from steersman.stores.optional_methods import chunks, subkeys
from steersman.transcripts.keys import SessionKey, SessionStoreEntry

Row = tuple[str, int, JsonDict | None]
"""An id, when the session was last written to, and the data of its summary, if that is current."""


class StoreCalls:
    """A store, for the sessions of one project."""

    def __init__(self, store: SessionStore, project: str) -> None:
        self.store = store
        self.project = project

    def key(self, session_id: str, part: str = "") -> SessionKey:
        """Return how the store names a session, or a part of one."""
        key: SessionKey = {"project_key": self.project, "session_id": session_id}
        if part:
            key["subpath"] = part
        return key

    def missing(self, session_id: str) -> SessionNotFound:
        """Return the error for a session that the store does not have."""
        return SessionNotFound(session_id, f"in the store, for the project {self.project}")

    async def append(self, session_id: str, part: str, entries: Sequence[JsonDict]) -> None:
        """Add entries."""
        await self.store.append(
            self.key(session_id, part), cast("list[SessionStoreEntry]", list(entries))
        )

    async def load(self, session_id: str, part: str = "") -> list[SessionStoreEntry] | None:
        """Return the entries; None if there are none."""
        return await self.store.load(self.key(session_id, part)) or None

    async def loaded(self, session_id: str, part: str = "") -> list[SessionStoreEntry]:
        """Return the entries. Raises `SessionNotFound`."""
        found = await self.load(session_id, part)
        if found is None:
            raise self.missing(session_id)
        return found

    async def count(self, session_id: str, part: str = "") -> int | None:
        """Return how many entries there are; None if the store cannot count them."""
        if isinstance(self.store, SupportsStream):
            try:
                return await self.store.positions(self.key(session_id, part))
            except NotImplementedError:
                return None
        return None

    async def exists(self, session_id: str, part: str = "") -> bool:
        """Whether the store has the session, or the part."""
        count = await self.count(session_id, part)
        return bool(count) if count is not None else await self.load(session_id, part) is not None

    def pages(self, session_id: str, part: str) -> AsyncIterator[list[SessionStoreEntry]]:
        """Yield the entries, in chunks if the store can give them so."""
        return chunks(self.store, self.key(session_id, part))

    async def rows(self) -> list[Row]:
        """Return the sessions of the project, newest first. Raises `UsageError`."""
        found = await self.rows_if_listed()
        if found is None:
            name = type(self.store).__name__
            raise UsageError("store", name, "a store with list_sessions, to list or search")
        return found

    async def rows_if_listed(self) -> list[Row] | None:
        """Return the sessions of the project, newest first; None if the store cannot list them."""
        summaries = await self._summaries()
        times = await self._times()
        if times is None and summaries is None:
            return None
        found: list[Row] = []
        if times is None:
            found = [(each, mtime, data) for each, (mtime, data) in (summaries or {}).items()]
        else:
            for each, mtime in times.items():
                known = (summaries or {}).get(each)
                is_current = known is not None and known[0] >= mtime
                found.append((each, mtime, known[1] if known is not None and is_current else None))
        return sorted(found, key=lambda row: (-row[1], row[0]))

    async def _times(self) -> dict[str, int] | None:
        method = getattr(self.store, "list_sessions", None)
        try:
            rows = None if method is None else await self.store.list_sessions(self.project)
        except NotImplementedError:
            return None
        return None if rows is None else {each["session_id"]: each["mtime"] for each in rows}

    async def _summaries(self) -> dict[str, tuple[int, JsonDict]] | None:
        method = getattr(self.store, "list_session_summaries", None)
        try:
            rows = None if method is None else await self.store.list_session_summaries(self.project)
        except NotImplementedError:
            return None
        if rows is None:
            return None
        return {each["session_id"]: (each["mtime"], each["data"]) for each in rows}

    async def subkeys(self, session_id: str) -> list[str]:
        """Return the subpaths of a session; none if the store cannot list them."""
        return await subkeys(self.store, self.key(session_id))

    async def delete(self, session_id: str) -> None:
        """Remove a session. Raises `UsageError` if the store cannot."""
        try:
            if getattr(self.store, "delete", None) is not None:
                await self.store.delete(self.key(session_id))
                return
        except NotImplementedError:
            pass
        raise UsageError("store", type(self.store).__name__, "a store with delete")
