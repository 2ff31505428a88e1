"""The front of stored sessions, for synchronous code."""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from steersman.ports import SessionStore
from steersman.sessions import arguments
from steersman.sessions.backends import Follower, Pages, Stream
from steersman.sessions.copying import Place, copy
from steersman.sessions.driving import (
    begin_in_private_loop,
    drive,
    follow,
    in_private_loop,
    run_in_private_loop,
)
from steersman.sessions.opening import open_backend
from steersman.sessions.words import Hit
from steersman.transcripts.entries import AgentInfo, SessionInfo, StoredMessage, TranscriptEntry

T = TypeVar("T")


class Sessions:
    """Stored conversations: the CLI's own files, or those in a `SessionStore`.

    With files, `config` is the CLI's configuration directory, by default CLAUDE_CONFIG_DIR or
    `~/.claude`, and `project` a directory, or None for all projects. With a store, `project` is a
    directory, by default the current one. `index=False` keeps no index in the cache directory.

    A store's methods are async. Here they are run in the event loop of a thread that all stores of
    synchronous code share, so a store that is bound to an event loop of yours belongs to
    `steersman.sessions.aio`. Where an event loop runs, a call with a store raises `UsageError`.
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

    def list(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        worktrees: bool = True,
        archived: bool = False,
    ) -> list[SessionInfo]:
        """Return the sessions, newest first; `archived` ones only if asked for.

        `worktrees` also lists those of the other worktrees of the project's git repository.
        """
        return self._do(
            self._backend.list(
                limit=arguments.optional_count("limit", limit),
                offset=arguments.count("offset", offset),
                worktrees=worktrees,
                archived=archived,
            )
        )

    def info(self, session_id: str) -> SessionInfo:
        """Return a session. Raises `SessionNotFound`."""
        return self._do(self._backend.info(arguments.session(session_id)))

    def messages(
        self,
        session_id: str,
        *,
        agent: str | None = None,
        last: int | None = None,
        through_compaction: bool = False,
    ) -> Iterator[StoredMessage]:
        """Return the messages of the conversation, or of the subagent `agent`; oldest first.

        `last` is how many, from the end. `through_compaction` also gives the messages before the
        newest compaction. Raises `SessionNotFound`.
        """
        pages = self._do(
            self._backend.messages(
                arguments.session(session_id),
                agent=agent,
                last=arguments.optional_count("last", last),
                through_compaction=through_compaction,
            )
        )
        return self._each(pages)

    def entries(self, session_id: str, *, agent: str | None = None) -> Iterator[TranscriptEntry]:
        """Return every entry, in the order in which the CLI wrote them. Raises `SessionNotFound`.

        Also entries of unknown kinds and lines that are no JSON; the last line may be `is_torn`.
        """
        return self._each(
            self._do(self._backend.entries(arguments.session(session_id), agent=agent))
        )

    def agents(self, session_id: str) -> builtins.list[AgentInfo]:
        """Return the subagents of a session. Raises `SessionNotFound`."""
        return [*self._do(self._backend.agents(arguments.session(session_id)))]

    def rename(self, session_id: str, title: str, *, force: bool = False) -> None:
        """Give a session a title. Raises `SessionInUse` if a live CLI has it open."""
        found = arguments.title(title)
        self._do(self._backend.rename(arguments.session(session_id), found, force=force))

    def tag(self, session_id: str, tag: str | None, *, force: bool = False) -> None:
        """Give a session a tag, or None for none. Raises `SessionInUse` as `rename` does."""
        found = arguments.tag(tag)
        self._do(self._backend.tag(arguments.session(session_id), found, force=force))

    def archive(self, session_id: str) -> None:
        """Mark a session as archived; `list` leaves it out then. Not with a store."""
        self._do(self._backend.archive(arguments.session(session_id), is_archived=True))

    def unarchive(self, session_id: str) -> None:
        """Undo `archive`."""
        self._do(self._backend.archive(arguments.session(session_id), is_archived=False))

    def delete(self, session_id: str, *, force: bool = False) -> None:
        """Remove a session with its subagents. Raises `SessionInUse` as `rename` does."""
        self._do(self._backend.delete(arguments.session(session_id), force=force))

    def fork(self, session_id: str, *, up_to: str | None = None, title: str | None = None) -> str:
        """Copy a conversation, up to and with the message `up_to`, and return the new id."""
        return self._do(
            self._backend.fork(
                arguments.session(session_id),
                up_to=arguments.entry_id("up_to", up_to),
                title=None if title is None else arguments.title(title),
            )
        )

    def search(self, text: str, *, limit: int = 20) -> builtins.list[Hit]:
        """Return entries that have all words of `text`, the best first.

        Words in double quotes must follow each other. Case and accents do not matter.
        """
        found = arguments.query(text), arguments.count("limit", limit)
        return [*self._do(self._backend.search(*found))]

    def follow(self, session_id: str, *, after: int = 0) -> AsyncIterator[TranscriptEntry]:
        """Return the entries after the first `after` ones, and further ones as they are added.

        Ends when the session is deleted. Raises `SessionNotFound` when it is first read.
        """
        return self._follow(arguments.session(session_id), arguments.count("after", after))

    async def _follow(self, session_id: str, after: int) -> AsyncIterator[TranscriptEntry]:
        follower = await self._await(self._backend.follower(session_id, after))

        async def next_of(each: Follower) -> builtins.list[TranscriptEntry] | None:
            return await self._await(each.next())

        async for entry in follow(follower, next_of):
            yield entry

    def copy_to(self, other: Sessions, session_id: str) -> int:
        """Copy what `other` lacks of a session, with its subagents; return how many entries.

        Where `other` has no project, the session keeps its own. Raises `SessionNotFound`.
        """
        target = arguments.front(other, Sessions)
        work = copy(
            Place(self._backend, _here),
            Place(target._backend, _here),
            arguments.session(session_id),
        )
        is_blocking = self._backend.is_blocking and target._backend.is_blocking
        return drive(work) if is_blocking else run_in_private_loop(work)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return drive(work) if self._backend.is_blocking else run_in_private_loop(work)

    async def _await(self, work: Coroutine[Any, Any, T]) -> T:
        if self._backend.is_blocking:
            return await asyncio.to_thread(drive, work)
        return await in_private_loop(work)

    def _each(self, pages: Pages[T] | Stream[T]) -> Iterator[T]:
        try:
            while page := self._do(pages.next()):
                yield from page
        finally:
            # Not waited for: this may run wherever the garbage collector does.
            if isinstance(pages, Pages):
                drive(pages.close())
            else:
                begin_in_private_loop(pages.close())


async def _here(work: Coroutine[Any, Any, T]) -> T:
    return await work
