"""What the tables of asks and of work need of a database: transactions, and news of changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

__all__ = ["AskDatabase", "Run"]

T = TypeVar("T")

Run = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs a statement with its values, and returns the rows.

`:now` is the time, and `:lease` the time by which leases count: near it, but never set.
"""


class AskDatabase(Protocol):
    """A database with the table of asks. Errors are `StoreError`."""

    async def read(self, work: Callable[[Run], Awaitable[T]]) -> T:
        """Run `work`, which only reads."""
        ...

    async def write(self, work: Callable[[Run], Awaitable[T]], *, is_vital: bool) -> T:
        """Run `work` in a transaction. What is vital must also survive a loss of power."""
        ...

    async def next_change(self, run: Run, *also: str) -> int:
        """Return the number of the next change; other writers wait until this one has ended.

        `also` are statements without values that are run before: a server is asked once for all.
        """
        ...

    @property
    def returns_rows(self) -> bool:
        """Whether a statement that inserts can end in RETURNING."""
        ...

    async def signal(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever another connection may have written, until cancelled."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
