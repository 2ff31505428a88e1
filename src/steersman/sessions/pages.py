"""Results that are read in pages, so that a thread or an event loop is entered once per page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

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
