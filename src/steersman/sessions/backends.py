"""What the fronts need from a place of sessions: files, or a store.

All methods are coroutines, so that one front can call both. Those of a backend whose `is_blocking`
is set read and write files and wait for nothing: they are run in a thread, or at once.
"""

# ruff: noqa: D102 - the front has the docstrings of its methods

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from steersman._json import JsonDict
from steersman.sessions.words import Hit, Query
from steersman.transcripts.entries import AgentInfo, SessionInfo, StoredMessage, TranscriptEntry

Part = str
"""A part of a session: empty for the conversation itself, or such as `subagents/agent-<id>`."""


class Follower(Protocol):
    """Reads what is added to a session."""

    interval: float
    """Seconds to wait when nothing was added."""

    async def next(self) -> list[TranscriptEntry] | None:
        """Return what was added since the last call; None if the session was deleted."""
        ...


class Copies(Protocol):
    """What copying a session needs from a place."""

    @property
    def leaves_out(self) -> str:
        """How the types begin of entries that are not copied to here; empty for none."""
        ...

    async def parts(self, session_id: str) -> Sequence[Part]:
        """Return the parts of a session, the conversation first."""
        ...

    async def project_of(self, session_id: str) -> str:
        """Return the key of the project that a session belongs to."""
        ...

    async def copied(self, session_id: str, part: Part, project: str) -> Sequence[JsonDict]:
        """Return the entries that a part already has here; none if there is no such session."""
        ...

    async def read(
        self, session_id: str, part: Part
    ) -> Pages[TranscriptEntry] | Stream[TranscriptEntry]:
        """Return the entries of a part, to be copied elsewhere."""
        ...

    async def add(
        self, session_id: str, part: Part, project: str, entries: Sequence[JsonDict]
    ) -> None:
        """Add entries that were copied from elsewhere."""
        ...


class Backend(Protocol):
    """A place where sessions are. Ids are checked by the caller."""

    @property
    def is_blocking(self) -> bool:
        """Whether the coroutines work with files and never wait."""
        ...

    @property
    def copies(self) -> Copies:
        """How sessions are copied from and to here."""
        ...

    async def list(
        self, *, limit: int | None, offset: int, worktrees: bool, archived: bool
    ) -> list[SessionInfo]: ...

    async def info(self, session_id: str) -> SessionInfo: ...

    async def messages(
        self, session_id: str, *, agent: str | None, last: int | None, through_compaction: bool
    ) -> Pages[StoredMessage]: ...

    async def entries(
        self, session_id: str, *, agent: str | None
    ) -> Pages[TranscriptEntry] | Stream[TranscriptEntry]: ...

    async def agents(self, session_id: str) -> Sequence[AgentInfo]: ...

    async def rename(self, session_id: str, title: str, *, force: bool) -> None: ...

    async def tag(self, session_id: str, tag: str, *, force: bool) -> None: ...

    async def archive(self, session_id: str, *, is_archived: bool) -> None: ...

    async def delete(self, session_id: str, *, force: bool) -> None: ...

    async def fork(self, session_id: str, *, up_to: str | None, title: str | None) -> str: ...

    async def search(self, query: Query, limit: int) -> Sequence[Hit]: ...

    async def follower(self, session_id: str, after: int) -> Follower: ...


T = TypeVar("T")
Kept = TypeVar("Kept")

MOST_ITEMS = 128
MOST_BYTES = 1 << 20


class Pages(Generic[T]):
    """A synchronous iterator, page by page."""

    def __init__(self, items: Iterator[T], size_of: Callable[[T], int]) -> None:
        self._items = items
        self._size_of = size_of
        self._is_closed = False

    async def next(self) -> list[T]:
        """Return the next items; none at the end."""
        page: list[T] = []
        size = 0
        for item in self._items:
            page.append(item)
            size += self._size_of(item)
            if len(page) >= MOST_ITEMS or size >= MOST_BYTES:
                break
        if self._is_closed:
            self._close()
        return page

    async def close(self) -> None:
        """Stop reading, or let a thread that is reading stop at the end of its page."""
        self._is_closed = True
        self._close()

    def _close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            # A generator that runs in another thread refuses; that thread closes it.
            with suppress(ValueError):
                close()


class Stream(Generic[T]):
    """An asynchronous iterator of pages, whose items `read` makes of what the pages hold."""

    def __init__(self, pages: AsyncIterator[list[Kept]], read: Callable[[Kept], T]) -> None:
        self._pages: AsyncIterator[list[Any]] = pages
        self._read: Callable[[Any], T] = read

    async def next(self) -> list[T]:
        """Return the next items; none at the end."""
        async for page in self._pages:
            if page:
                return [self._read(each) for each in page]
        return []

    async def close(self) -> None:
        """Stop reading."""
        close = getattr(self._pages, "aclose", None)
        if close is not None:
            await close()
