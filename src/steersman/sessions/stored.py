"""Sessions in a `SessionStore`, some of whose methods may be missing."""

from __future__ import annotations

import asyncio
import builtins
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import cast

from steersman._json import JsonDict
from steersman.errors import SessionNotFound, UsageError
from steersman.ports import SessionStore, SupportsStream
from steersman.sessions.backends import Pages, Part, Stream
from steersman.sessions.changes import now
from steersman.sessions.places import agent_info, agent_named, agents_of
from steersman.sessions.words import Hit, Query, ranked
from steersman.stores.optional_methods import chunks, subkeys
from steersman.transcripts.chain import lines_source, messages
from steersman.transcripts.entries import (
    AgentInfo,
    SessionInfo,
    StoredMessage,
    TranscriptEntry,
    entry_of,
)
from steersman.transcripts.forking import fork
from steersman.transcripts.identity import AGENT_METADATA, NOT_KEPT
from steersman.transcripts.keys import SessionKey, SessionStoreEntry, is_safe_subpath
from steersman.transcripts.summary import Summary

AT_ONCE = 8
"""How many sessions are loaded at the same time."""
INTERVAL = 1.0
"""Seconds between two looks at a store, which may be far away."""
LEAST_CANDIDATES = 100


class StoredSessions:
    """The sessions of one project in a store."""

    is_blocking = False

    def __init__(self, store: SessionStore, project: str) -> None:
        self._calls = StoreCalls(store, project)
        self.copies = StoreCopies(self._calls)

    async def list(
        self,
        *,
        limit: int | None,
        offset: int,
        worktrees: bool,  # noqa: ARG002 - a store knows keys, not directories
        archived: bool,  # noqa: ARG002 - nothing is archived in a store
    ) -> list[SessionInfo]:
        """Return what there is, newest first."""
        rows = await self._calls.rows()
        wanted = len(rows) if limit is None else offset + limit
        found: list[SessionInfo] = []
        for start in range(0, len(rows), AT_ONCE):
            if len(found) >= wanted:
                break
            chunk = rows[start : start + AT_ONCE]
            infos = await asyncio.gather(*(self._info(*each) for each in chunk))
            found += [each for each in infos if each is not None]
        return found[offset:wanted]

    async def _info(self, session_id: str, mtime: int, data: JsonDict | None) -> SessionInfo | None:
        if data is None:
            entries = await self._calls.load(session_id)
            if entries is None:
                return None
            summary = Summary()
            summary.fold_all(entry_of(each) for each in entries)
        else:
            summary = Summary.from_data(data)
        return summary.info(session_id, mtime)

    async def info(self, session_id: str) -> SessionInfo:
        """Return a session. Raises `SessionNotFound`."""
        rows = await self._calls.rows_if_listed()
        mine = [each for each in rows or [] if each[0] == session_id]
        found = await self._info(*mine[0]) if mine else None
        if found is None:
            entries = await self._calls.loaded(session_id)
            summary = Summary()
            summary.fold_all(entry_of(each) for each in entries)
            found = summary.info(session_id, mine[0][1] if mine else 0)
        if found is None:
            raise SessionNotFound(session_id, reason="it has neither a prompt nor a title")
        return found

    async def messages(
        self, session_id: str, *, agent: str | None, last: int | None, through_compaction: bool
    ) -> Pages[StoredMessage]:
        """Return the messages of a conversation, or of a subagent."""
        about = None if agent is None else await self._agent(session_id, agent)
        entries = await self._calls.loaded(session_id, about.subpath if about else "")
        kept = [each for each in entries if each.get("type") != AGENT_METADATA]
        found = messages(
            lines_source([entry_of(each).raw for each in kept]),
            session_id=session_id,
            last=last,
            through_compaction=through_compaction,
            agent=about,
        )
        return Pages(found, lambda each: len(each.raw))

    async def entries(self, session_id: str, *, agent: str | None) -> Stream[TranscriptEntry]:
        """Return all entries, in chunks if the store can give them so."""
        part = "" if agent is None else (await self._agent(session_id, agent)).subpath
        if not await self._calls.exists(session_id, part):
            raise self._calls.missing(session_id)
        return Stream(self._calls.pages(session_id, part), entry_of)

    async def agents(self, session_id: str) -> Sequence[AgentInfo]:
        """Return the subagents of a session."""
        if not await self._calls.exists(session_id):
            raise self._calls.missing(session_id)
        subpaths = agents_of(await self._calls.subkeys(session_id))
        return [await self._about(session_id, each) for each in sorted(subpaths)]

    async def _about(self, session_id: str, subpath: str) -> AgentInfo:
        entries = await self._calls.load(session_id, subpath) or []
        notes = [dict(each) for each in entries if each.get("type") == AGENT_METADATA]
        return agent_info(subpath, notes[-1] if notes else {})

    async def _agent(self, session_id: str, agent: str) -> AgentInfo:
        return agent_named(await self.agents(session_id), agent)

    async def rename(self, session_id: str, title: str, *, force: bool) -> None:  # noqa: ARG002
        """Add the CLI's own entry for a title."""
        await self._add(session_id, {"type": "custom-title", "customTitle": title})

    async def tag(self, session_id: str, tag: str, *, force: bool) -> None:  # noqa: ARG002
        """Add the CLI's own entry for a tag; an empty one removes it."""
        await self._add(session_id, {"type": "tag", "tag": tag})

    async def _add(self, session_id: str, entry: JsonDict) -> None:
        if not await self._calls.exists(session_id):
            raise self._calls.missing(session_id)
        # With a uuid, so that a store that leaves out what it has twice keeps both of two changes.
        about = {"sessionId": session_id, "uuid": str(uuid.uuid4()), "timestamp": now()}
        whole = {**entry, **about}
        await self._calls.append(session_id, "", [whole])

    async def archive(self, session_id: str, *, is_archived: bool) -> None:  # noqa: ARG002
        """Refuse: archiving is a note beside a file, and a store has no place for it."""
        raise UsageError(
            "store",
            type(self._calls.store).__name__,
            "the CLI's own files, to archive a session",
            hint="mark the session with tag(), and leave it out of your list",
        )

    async def delete(self, session_id: str, *, force: bool) -> None:  # noqa: ARG002
        """Remove a session with all its parts."""
        if not await self._calls.exists(session_id):
            raise self._calls.missing(session_id)
        await self._calls.delete(session_id)

    async def fork(self, session_id: str, *, up_to: str | None, title: str | None) -> str:
        """Copy a conversation under a new id, and return that id."""
        entries = await self._calls.loaded(session_id)
        new_id = str(uuid.uuid4())
        made = fork(
            [dict(each) for each in entries],
            session_id=session_id,
            new_id=new_id,
            new_uuid=lambda: str(uuid.uuid4()),
            timestamp=now(),
            up_to=up_to,
            title=title,
        )
        await self._calls.append(new_id, "", builtins.list(made))
        return new_id

    async def search(self, query: Query, limit: int) -> Sequence[Hit]:
        """Return the entries that fit best, from the newest sessions on."""
        most = max(LEAST_CANDIDATES, 5 * limit)
        found: list[Hit] = []
        for session_id, _, _ in await self._calls.rows():
            for entry in reversed(await self._calls.load(session_id) or []):
                hit = query.hit(entry_of(entry), session_id)
                found += [hit] if hit else []
            if len(found) >= most:
                break
        return ranked(found[:most], limit)

    async def follower(self, session_id: str, after: int) -> StoreFollower:
        """Return what reads the entries that are added."""
        if not await self._calls.exists(session_id):
            raise self._calls.missing(session_id)
        return StoreFollower(self._calls, session_id, after)


class StoreFollower:
    """Reads entries as they are added to a store, by their number."""

    interval = INTERVAL

    def __init__(self, calls: StoreCalls, session_id: str, after: int) -> None:
        self._calls = calls
        self._session_id = session_id
        self._seen = after

    async def next(self) -> list[TranscriptEntry] | None:
        """Return the entries that were added; None if the session was deleted."""
        if isinstance(self._calls.store, SupportsStream):
            count = await self._calls.count(self._session_id)
            if count is not None and count == self._seen:
                return []
        entries = await self._calls.load(self._session_id)
        if entries is None:
            return None
        # If there are fewer now, the session was made anew, and its next entries are new ones.
        begin, self._seen = min(self._seen, len(entries)), len(entries)
        return [entry_of(each) for each in entries[begin:]]


class StoreCopies:
    """The entries of sessions in a store, part by part."""

    leaves_out = NOT_KEPT
    """The CLI's own mirror leaves these out too: they are large, and no resume needs them."""

    def __init__(self, calls: StoreCalls) -> None:
        self._calls = calls

    async def parts(self, session_id: str) -> Sequence[Part]:
        """Return the conversation and its other parts. Raises `SessionNotFound`."""
        if not await self._calls.exists(session_id):
            raise self._calls.missing(session_id)
        found = await self._calls.subkeys(session_id)
        return ["", *sorted(each for each in found if is_safe_subpath(each))]

    async def project_of(self, session_id: str) -> str:  # noqa: ARG002 - the same for all
        """Return the key of the project."""
        return self._calls.project

    async def read(self, session_id: str, part: Part) -> Stream[TranscriptEntry]:
        """Return the entries of a part."""
        return Stream(self._calls.pages(session_id, part), entry_of)

    async def copied(
        self,
        session_id: str,
        part: Part,
        project: str,  # noqa: ARG002 - what is copied here is found here
    ) -> Sequence[JsonDict]:
        """Return the entries that a part has here."""
        return [dict(each) for each in await self._calls.load(session_id, part) or []]

    async def add(
        self,
        session_id: str,
        part: Part,
        project: str,  # noqa: ARG002 - as above
        entries: Sequence[JsonDict],
    ) -> None:
        """Add entries."""
        await self._calls.append(session_id, part, entries)


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
