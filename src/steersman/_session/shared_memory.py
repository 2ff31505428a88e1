"""The limit for the journals of this process together.

Each journal has a limit of its own, `journal_memory`. Hundreds of sessions, each within it, could
still fill the machine: when all journals together hold more than the limit here, the largest ones
forget their oldest entries, as if they had been given less.
"""

from __future__ import annotations

import threading
import weakref

from steersman.errors import UsageError
from steersman.journal import Journal

__all__ = ["DEFAULT_TOTAL", "SHARED", "SharedMemory", "limit_journal_memory"]

DEFAULT_TOTAL = 1024 * 1024 * 1024
"""Bytes of lines that all journals of this process keep, at first."""


class SharedMemory:
    """All journals of the process, and how much they may keep together."""

    def __init__(self, total: int = DEFAULT_TOTAL) -> None:
        self.total = total
        self._lock = threading.Lock()
        self._threads: weakref.WeakKeyDictionary[Journal, int] = weakref.WeakKeyDictionary()
        """The journals that have grown, and the thread in which each is written and read."""

    def journal(self, memory: int) -> Journal:
        """Return a new journal that keeps `memory` bytes, or less if all keep too much."""
        return Journal(memory, self.grown)

    def grown(self, journal: Journal) -> None:
        """Note that `journal` has grown, in this thread; have the largest ones forget.

        No journal is left with less than an equal share. If the own limit of one is above the
        total, that limit is the total: it was set on purpose.
        """
        here = threading.get_ident()
        with self._lock:
            self._threads[journal] = here
            threads = dict(self._threads)
        journals = sorted(threads, key=lambda each: each.kept, reverse=True)
        total = max(self.total, *(each.memory for each in journals))
        excess = sum(each.kept for each in journals) - total
        share = total // len(journals)
        for each in journals:
            if excess <= 0 or each.kept <= share:
                return
            given = min(excess, each.kept - share)
            # A journal of another thread is being read there.
            each.keep_at_most(each.kept - given, at_once=threads[each] == here)
            excess -= given


SHARED = SharedMemory()


def limit_journal_memory(size: int) -> None:
    """Set how many bytes the journals of all sessions in this process keep together.

    1 GiB if it is never called. `journal_memory` limits each session alone. Journals that are too
    large forget their oldest entries when one of them grows.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("size", size, "a number of bytes above 0")
    SHARED.total = size
