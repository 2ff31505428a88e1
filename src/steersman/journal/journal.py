"""An append-only log that forgets its oldest entries when they weigh too much."""

from __future__ import annotations

from collections.abc import Sequence

from steersman._json import JsonObject
from steersman.journal.entries import NOTHING, Entry, Kind
from steersman.messages.parsing import Message

__all__ = ["CONVERSATION", "DEFAULT_MEMORY", "Journal"]

CONVERSATION = frozenset(
    {Kind.MESSAGE, Kind.PARTIAL, Kind.BOOKKEEPING, Kind.SETTLED, Kind.RESTARTED}
)
"""Entries that a reader of the conversation waits for."""

DEFAULT_MEMORY = 64 * 1024 * 1024
"""Bytes of lines kept in memory."""

# An entry costs about this much beside its line, so a million tiny ones are bounded as well.
ENTRY_WEIGHT = 200

# Python 3.11 looks an enum's members up at thirty times the price of a name.
PARTIAL, SETTLED = Kind.PARTIAL, Kind.SETTLED

WARM = 512 * 1024
"""What entries may weigh that keep what they were decoded to, before older ones let go of it.

More than one read can bring: a reader that keeps up never decodes what was decoded on arrival.
"""


class Journal:
    """Entries in order, each with a sequence number; the first is 1."""

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        self._memory = memory
        self._entries: list[Entry] = []
        self._start = 0
        self._forgotten = 0
        self._written = 0
        """What all entries weigh that there ever were; the next two are weights in that count."""
        self._gone = 0
        self._cooled = 0
        self._warm_after = self._fresh_after = 0
        self._tidy_at = min(memory, WARM)
        """Beyond this weight there is something to forget, or to let cool down."""
        self.last_seq = 0
        """The number of the newest entry; 0 before the first."""
        self.last_in_conversation = 0
        """The number of the newest entry that is part of the conversation."""
        self.last_settled = 0
        """The number of the newest entry that ends a turn."""

    def append(
        self,
        at: float,
        kind: Kind,
        line: bytes = b"",
        turns: tuple[str, ...] = (),
        details: JsonObject = NOTHING,
        decoded: Message | None = None,
    ) -> Entry:
        """Write the next entry, and forget the oldest ones if it grows too heavy."""
        self.last_seq = seq = self.last_seq + 1
        if kind in CONVERSATION:
            self.last_in_conversation = seq
            if kind is SETTLED:
                self.last_settled = seq
        entry = Entry(seq, at, kind, line, turns, details, decoded)
        self._entries.append(entry)
        self._written = written = self._written + len(line) + ENTRY_WEIGHT
        if written > self._tidy_at:
            self._tidy()
        return entry

    def append_partials(
        self, at: float, lines: Sequence[bytes], turns: tuple[str, ...]
    ) -> list[Entry]:
        """The same for pieces that came together, at a third of the price."""
        seq = self.last_seq
        entries = [
            Entry(number, at, PARTIAL, line, turns) for number, line in enumerate(lines, seq + 1)
        ]
        self._entries += entries
        self.last_seq = self.last_in_conversation = seq + len(entries)
        self._written += sum(map(len, lines)) + len(entries) * ENTRY_WEIGHT
        if self._written > self._tidy_at:
            self._tidy()
        return entries

    def after(self, seq: int, most: int = 512) -> list[Entry]:
        """Up to `most` entries behind number `seq`, those that are still here."""
        begin = self._start + max(0, seq - self._forgotten)
        return self._entries[begin : begin + most]

    def lost_after(self, seq: int) -> int:
        """How many entries behind number `seq` are gone."""
        return max(0, self._forgotten - seq)

    def _tidy(self) -> None:
        if self._written - self._gone > self._memory:
            self._forget()
        if self._written - self._cooled > WARM:
            self._cool()
        self._tidy_at = min(self._gone + self._memory, self._cooled + WARM)

    def _cool(self) -> None:
        """Let go of what older entries were decoded to: for all, that would outweigh the lines.

        Whoever comes later decodes them again.
        """
        count = self._fresh_after - max(self._warm_after, self._forgotten)
        for entry in self.after(self._warm_after, most=max(0, count)):
            if entry.decoded is not None:
                entry.decoded = None
        self._warm_after, self._fresh_after = self._fresh_after, self.last_seq
        self._cooled = self._written

    def _forget(self) -> None:
        while self._written - self._gone > self._memory and self._start < len(self._entries) - 1:
            self._gone += len(self._entries[self._start].line) + ENTRY_WEIGHT
            # Readers hold entries, not the list: dropping the reference frees the line now.
            self._entries[self._start] = _GONE
            self._start += 1
            self._forgotten += 1
        if self._start * 2 > len(self._entries):
            del self._entries[: self._start]
            self._start = 0


_GONE = Entry(0, 0.0, Kind.NOISE)
