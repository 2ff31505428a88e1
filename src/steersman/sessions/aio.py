"""The front of stored sessions, for asynchronous code: the names of `steersman.sessions.Sessions`.

Work with files is done in threads. The methods of a store are awaited in the caller's event loop.
"""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from steersman.ports import SessionStore
from steersman.sessions import arguments
from steersman.sessions.backends import Follower, Pages, Stream
from steersman.sessions.copying import Place, copy
from steersman.sessions.driving import drive, follow
from steersman.sessions.opening import open_backend
from steersman.sessions.words import Hit
from steersman.transcripts.entries import AgentInfo, SessionInfo, StoredMessage, TranscriptEntry

__all__ = ["Sessions"]

T = TypeVar("T")


class Sessions:
    """Stored conversations: the CLI's own files, or those in a `SessionStore`.

    Takes what `steersman.sessions.Sessions` takes.
    """

    def __init__(
        self,
        store: SessionStore | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        project: str | os.PathLike[str] | None = None,
        index: bool = True,
    ) -> None:
        self._backend = open_backend(store, config, project, index=index)

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        worktrees: bool = True,
        archived: bool = False,
    ) -> list[SessionInfo]:
        """Return the sessions, newest first; `archived` ones only if asked for."""
        return await self._do(
            self._backend.list(
                limit=arguments.optional_count("limit", limit),
                offset=arguments.count("offset", offset),
                worktrees=worktrees,
                archived=archived,
            )
        )

    async def info(self, session_id: str) -> SessionInfo:
        """Return a session. Raises `SessionNotFound`."""
        return await self._do(self._backend.info(arguments.session(session_id)))

    def messages(
        self,
        session_id: str,
        *,
        agent: str | None = None,
        last: int | None = None,
        through_compaction: bool = False,
    ) -> AsyncIterator[StoredMessage]:
        """Return the messages of the conversation, or of the subagent `agent`; oldest first.

        Raises `SessionNotFound` when the first one is read.
        """
        pages = self._backend.messages(
            arguments.session(session_id),
            agent=agent,
            last=arguments.optional_count("last", last),
            through_compaction=through_compaction,
        )
        return self._each(pages)

    def entries(
        self, session_id: str, *, agent: str | None = None
    ) -> AsyncIterator[TranscriptEntry]:
        """Return every entry, in the order in which the CLI wrote them.

        Raises `SessionNotFound` when the first one is read.
        """
        return self._each(self._backend.entries(arguments.session(session_id), agent=agent))

    async def agents(self, session_id: str) -> builtins.list[AgentInfo]:
        """Return the subagents of a session. Raises `SessionNotFound`."""
        return [*await self._do(self._backend.agents(arguments.session(session_id)))]

    async def rename(self, session_id: str, title: str, *, force: bool = False) -> None:
        """Give a session a title. Raises `SessionInUse` if a live CLI has it open."""
        found = arguments.title(title)
        await self._do(self._backend.rename(arguments.session(session_id), found, force=force))

    async def tag(self, session_id: str, tag: str | None, *, force: bool = False) -> None:
        """Give a session a tag, or None for none. Raises `SessionInUse` as `rename` does."""
        found = arguments.tag(tag)
        await self._do(self._backend.tag(arguments.session(session_id), found, force=force))

    async def archive(self, session_id: str) -> None:
        """Mark a session as archived; `list` leaves it out then. Not with a store."""
        await self._do(self._backend.archive(arguments.session(session_id), is_archived=True))

    async def unarchive(self, session_id: str) -> None:
        """Undo `archive`."""
        await self._do(self._backend.archive(arguments.session(session_id), is_archived=False))

    async def delete(self, session_id: str, *, force: bool = False) -> None:
        """Remove a session with its subagents. Raises `SessionInUse` as `rename` does."""
        await self._do(self._backend.delete(arguments.session(session_id), force=force))

    async def fork(
        self, session_id: str, *, up_to: str | None = None, title: str | None = None
    ) -> str:
        """Copy a conversation, up to and with the message `up_to`, and return the new id."""
        return await self._do(
            self._backend.fork(
                arguments.session(session_id),
                up_to=arguments.entry_id("up_to", up_to),
                title=None if title is None else arguments.title(title),
            )
        )

    async def search(self, text: str, *, limit: int = 20) -> builtins.list[Hit]:
        """Return entries that have all words of `text`, the best first."""
        found = arguments.query(text), arguments.count("limit", limit)
        return [*await self._do(self._backend.search(*found))]

    def follow(self, session_id: str, *, after: int = 0) -> AsyncIterator[TranscriptEntry]:
        """Return the entries after the first `after` ones, and further ones as they are added.

        Ends when the session is deleted. Raises `SessionNotFound` when it is first read.
        """
        return self._follow(arguments.session(session_id), arguments.count("after", after))

    async def _follow(self, session_id: str, after: int) -> AsyncIterator[TranscriptEntry]:
        follower = await self._do(self._backend.follower(session_id, after))

        async def next_of(each: Follower) -> builtins.list[TranscriptEntry] | None:
            return await self._do(each.next())

        async for entry in follow(follower, next_of):
            yield entry

    async def copy_to(self, other: Sessions, session_id: str) -> int:
        """Copy what `other` lacks of a session, with its subagents; return how many entries.

        Where `other` has no project, the session keeps its own. Raises `SessionNotFound`.
        """
        target = arguments.front(other, Sessions)
        here, there = Place(self._backend, self._do), Place(target._backend, target._do)
        return await copy(here, there, arguments.session(session_id))

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        if self._backend.is_blocking:
            return await asyncio.to_thread(drive, work)
        return await work

    async def _each(
        self, opening: Coroutine[Any, Any, Pages[T]] | Coroutine[Any, Any, Pages[T] | Stream[T]]
    ) -> AsyncIterator[T]:
        pages = await self._do(opening)
        try:
            while page := await self._do(pages.next()):
                for each in page:
                    yield each
        finally:
            await self._do(pages.close())
