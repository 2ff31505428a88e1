"""`for` over what an async iterator yields: one trip to the event loop for all that is there."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from steersman._portal.portal import Portal

T = TypeVar("T")


@runtime_checkable
class HasReady(Protocol[T]):
    """A reader that knows which of its items are there already."""

    def ready(self) -> list[T]:
        """Return them, without waiting."""
        ...


class Items(Iterator[T]):
    """The items of an async iterator. May be left halfway; needs no closing.

    `KeyboardInterrupt` while it waits calls `stop`, and is raised.
    """

    def __init__(
        self,
        portal: Portal,
        make: Callable[[], AsyncIterator[T]],
        stop: Callable[[], None] = lambda: None,
        leave: Callable[[AsyncIterator[T]], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Make the async iterator in the event loop; `leave` ends it when nothing reads it."""
        self._portal = portal
        self._stop = stop
        """Belongs to a turn or a session, which is so not freed before its reader."""
        self._leave = leave
        self._source = portal.do(make)
        self._ready = _ready_of(self._source)
        self._here: deque[T] = deque()

    def __next__(self) -> T:
        if not self._here:
            try:
                self._here.extend(self._portal.call(_fetch, self._source, self._ready))
            except KeyboardInterrupt:
                self._stop()
                raise
            if not self._here:
                raise StopIteration
        return self._here.popleft()

    def __del__(self) -> None:
        leave, source = self._leave, getattr(self, "_source", None)
        if leave is not None and source is not None:
            self._portal.do_soon(lambda: asyncio.Task(leave(source)))


def _ready_of(source: AsyncIterator[T]) -> Callable[[], list[T]]:
    return source.ready if isinstance(source, HasReady) else list


async def _fetch(source: AsyncIterator[T], ready: Callable[[], list[T]]) -> list[T]:
    """Wait for the next item, and return it with those that are there; none at the end."""
    try:
        return [await anext(source), *ready()]
    except StopAsyncIteration:
        return []
