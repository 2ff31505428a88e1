"""An append-only log that forgets its oldest entries when they weigh too much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.journal.entries import NOTHING, Entry, Kind

__all__ = ["DEFAULT_MEMORY", "Journal"]

DEFAULT_MEMORY = 64 * 1024 * 1024
"""Bytes of lines kept in memory."""

# An entry costs about this much beside its line, so a million tiny ones are bounded as well.
ENTRY_WEIGHT = 200

WARM = 256 * 1024
"""Bytes of lines that may keep what they were decoded to, and as much again before they are gone.

As much as one read can bring: a reader that keeps up never decodes what was decoded on arrival.
"""


class Journal:
    """Entries in order, each with a sequence number; the first is 1."""

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        self._memory = memory
        self._weight = 0
        self._entries: list[Entry] = []
        self._forgotten = 0
        self._start = 0
        self._warmth = 0
        self._warm_after = self._fresh_after = 0
        self.last_seq = 0
        """The number of the newest entry; 0 before the first."""

    def append(
        self,
        at: float,
        kind: Kind,
        line: bytes = b"",
        turns: tuple[str, ...] = (),
        details: Mapping[str, Any] = NOTHING,
    ) -> Entry:
        """Write the next entry, and forget the oldest ones if it grows too heavy."""
        self.last_seq += 1
        entry = Entry(self.last_seq, at, kind, line, turns, details)
        self._entries.append(entry)
        weight = len(line)
        self._weight += weight + ENTRY_WEIGHT
        if self._weight > self._memory:
            self._forget()
        self._warmth += weight
        if self._warmth > WARM:
            self._cool()
        return entry

    def after(self, seq: int, most: int = 512) -> list[Entry]:
        """Up to `most` entries behind number `seq`, those that are still here."""
        begin = self._start + max(0, seq - self._forgotten)
        return self._entries[begin : begin + most]

    def lost_after(self, seq: int) -> int:
        """How many entries behind number `seq` are gone."""
        return max(0, self._forgotten - seq)

    def _cool(self) -> None:
        """Let go of what older entries were decoded to: for all, that would outweigh the lines.

        Whoever comes later decodes them again.
        """
        count = self._fresh_after - max(self._warm_after, self._forgotten)
        for entry in self.after(self._warm_after, most=max(0, count)):
            entry.decoded = None
        self._warm_after, self._fresh_after = self._fresh_after, self.last_seq
        self._warmth = 0

    def _forget(self) -> None:
        while self._weight > self._memory and self._start < len(self._entries) - 1:
            self._weight -= len(self._entries[self._start].line) + ENTRY_WEIGHT
            # Readers hold entries, not the list: dropping the reference frees the line now.
            self._entries[self._start] = _GONE
            self._start += 1
            self._forgotten += 1
        if self._start * 2 > len(self._entries):
            del self._entries[: self._start]
            self._start = 0


_GONE = Entry(0, 0.0, Kind.NOISE)
