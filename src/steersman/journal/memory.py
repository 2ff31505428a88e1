"""The limit for the journals of this process together.

Each journal has a limit of its own, `journal_memory`. Hundreds of sessions, each within it, could
still fill the machine: when all journals together hold more than the limit here, the largest ones
forget their oldest entries, as if they had been given less.
"""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

from steersman.errors import UsageError

__all__ = ["DEFAULT_TOTAL", "limit_memory"]

DEFAULT_TOTAL = 1024 * 1024 * 1024
"""Bytes of lines that all journals of this process keep, unless `limit_memory` was called."""


class Keeper(Protocol):
    """A journal, as far as it is known here."""

    @property
    def memory(self) -> int:
        """How many bytes it may keep."""
        ...

    @property
    def kept(self) -> int:
        """How many bytes it keeps."""
        ...

    def keep_at_most(self, size: int) -> None:
        """Forget the oldest entries until `size` bytes are left. Called in any thread."""
        ...


class SharedMemory:
    """All journals of the process, and how much they may keep together."""

    def __init__(self, total: int = DEFAULT_TOTAL) -> None:
        self.total = total
        self._lock = threading.Lock()
        self._journals: weakref.WeakSet[Keeper] = weakref.WeakSet()

    def add(self, journal: Keeper) -> None:
        """Count what `journal` keeps, as long as it exists."""
        with self._lock:
            self._journals.add(journal)

    def relieve(self) -> None:
        """Have the largest journals forget what is too much.

        No journal is left with less than an equal share. If the own limit of one is above the
        total, that limit is the total: it was set on purpose.
        """
        with self._lock:
            journals = sorted(self._journals, key=lambda each: each.kept, reverse=True)
        total = max([self.total, *(each.memory for each in journals)])
        excess = sum(each.kept for each in journals) - total
        share = total // max(1, len(journals))
        for each in journals:
            if excess <= 0 or each.kept <= share:
                return
            given = min(excess, each.kept - share)
            each.keep_at_most(each.kept - given)
            excess -= given


SHARED = SharedMemory()


def limit_memory(size: int) -> None:
    """Set how many bytes the journals of all sessions in this process keep together.

    1 GiB if it is never called. `journal_memory` limits each session alone.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("size", size, "a number of bytes above 0")
    SHARED.total = size
    SHARED.relieve()
