"""Sessions in a `SessionStore`."""

from __future__ import annotations

import asyncio
import builtins
import uuid
from collections.abc import Sequence

from steersman._json import JsonDict
from steersman.errors import SessionNotFound, UsageError
from steersman.ports import SessionStore, SupportsStream
from steersman.sessions.changes import now
from steersman.sessions.pages import Pages, Stream
from steersman.sessions.store_calls import StoreCalls
from steersman.sessions.store_copies import StoreCopies
from steersman.sessions.subagents import agent_info, agents_of
from steersman.sessions.words import Hit, Query, ranked
from steersman.transcripts.chain import lines_source, messages
from steersman.transcripts.entries import (
    AgentInfo,
    SessionInfo,
    StoredMessage,
    TranscriptEntry,
    entry_of,
)
from steersman.transcripts.forking import fork
from steersman.transcripts.identity import AGENT_METADATA
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
        found = await self.agents(session_id)
        for each in found:
            if each.agent_id == agent:
                return each
        known = ", ".join(each.agent_id for each in found) or "it has none"
        raise UsageError("agent", agent, f"the id of a subagent of this session: {known}")

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
