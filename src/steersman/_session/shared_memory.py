"""The limit for the journals of this process together.

Each journal has a limit of its own, `journal_memory`. Hundreds of sessions, each within it, could
still fill the machine: when all journals together hold more than the limit here, the largest ones
forget their oldest entries, as if they had been given less.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

from steersman.errors import UsageError
from steersman.journal import Journal

DEFAULT_TOTAL = 1024 * 1024 * 1024
"""Bytes of lines that all journals of this process keep, at first."""

SLACK = 8
"""One part in so many of the total is forgotten at a time, and may grow without being noticed."""

SMALLEST_STEP = 16 * 1024
LARGEST_STEP = 512 * 1024
"""Bytes by which a journal may grow without being noticed, however many there are."""


@dataclass(slots=True)
class _Share:
    """What is known about one journal."""

    thread: int
    """Where it is written and read."""
    kept: int = 0
    """What it kept when it last grew, or less if it must forget."""


class SharedMemory:
    """All journals of the process, and how much they may keep together."""

    def __init__(self, total: int = DEFAULT_TOTAL) -> None:
        self.total = total
        # Taken again by a journal that is freed while it is held.
        self._lock = threading.RLock()
        self._shares: weakref.WeakKeyDictionary[Journal, _Share] = weakref.WeakKeyDictionary()
        """The journals that have grown."""
        self._kept = 0
        self._largest = 0
        """The largest limit of one journal."""

    def journal(self, memory: int) -> Journal:
        """Return a new journal that keeps `memory` bytes, or less if all keep too much."""
        return Journal(memory, self.grown)

    def grown(self, journal: Journal) -> int:
        """Note that `journal` has grown, in this thread; have the largest ones forget.

        Returns after how many bytes to call this again. No journal is left with less than an equal
        share, apart from the slack. If the own limit of one is above the total, that limit is the
        total: it was set on purpose.
        """
        here = threading.get_ident()
        with self._lock:
            share = self._shares.get(journal)
            if share is None:
                share = self._add(journal, here)
            share.thread = here
            self._count(share, journal.kept)
            too_large = self._shrink() if self._kept > max(self.total, self._largest) else ()
            step = self.total // (SLACK * len(self._shares))
        for each, kept, thread in too_large:
            # A journal of another thread is being read there.
            each.keep_at_most(kept, at_once=thread == here)
        return min(max(step, SMALLEST_STEP), LARGEST_STEP)

    def _add(self, journal: Journal, thread: int) -> _Share:
        self._shares[journal] = share = _Share(thread)
        self._largest = max(self._largest, journal.memory)
        weakref.finalize(journal, self._drop, share).atexit = False
        return share

    def _drop(self, share: _Share) -> None:
        with self._lock:
            self._count(share, 0)

    def _count(self, share: _Share, kept: int) -> None:
        self._kept += kept - share.kept
        share.kept = kept

    def _shrink(self) -> list[tuple[Journal, int, int]]:
        """Return the journals that must forget, how much each keeps then, and its thread."""
        known = list(self._shares.items())
        self._largest = max(journal.memory for journal, _ in known)
        total = max(self.total, self._largest)
        wanted = total - total // SLACK
        excess = 0 if self._kept <= total else self._kept - wanted
        least = wanted // len(known)
        found: list[tuple[Journal, int, int]] = []
        for journal, share in sorted(known, key=lambda each: each[1].kept, reverse=True):
            given = min(excess, share.kept - least)
            if given <= 0:
                break
            excess -= given
            self._count(share, share.kept - given)
            found.append((journal, share.kept, share.thread))
        return found


SHARED = SharedMemory()


def limit_journal_memory(size: int) -> None:
    """Set how many bytes the journals of all sessions in this process keep together.

    1 GiB if it is never called. `journal_memory` limits each session alone. Journals that are too
    large forget their oldest entries when one of them grows.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("size", size, "a number of bytes above 0")
    SHARED.total = size
