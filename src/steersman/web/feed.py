"""The newest frames of one session, encoded once for all viewers, and the older ones from its file.

A sink of the session's journal. Viewers pull: each has a cursor of its own, and is only notified
of more. One that does not read holds nothing here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from steersman.journal import Entry
from steersman.journal.json_form import EntryEncoder
from steersman.web.failures import LOG
from steersman.web.records import at_of, frame_of_line, last_of, prefix_of, record_at, records_after

MEMORY = 1024 * 1024
"""Bytes of the newest entries that are kept in memory."""
WEIGHT = 300
"""Bytes that an entry needs beside its line."""
MOST_BYTES = 128 * 1024
"""About how many bytes one batch has."""
MOST_FRAMES = 512

Notify: TypeAlias = Callable[[str], None]
"""Is called with the session's id when there are new frames; must not block."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Frames after a cursor."""

    text: str = ""
    """The frames, one per line; empty if there are none."""
    upto: int = 0
    """The number of the last one: the next cursor."""
    lost: int = 0
    """How many entries before them cannot be read any more."""


class Feed:
    """The frames of one session, open or not.

    A `SupportsLastSeq`: entries that could not be stored were shown, so the next session counts on
    from the newest that was shown, and not from the end of the file.
    """

    def __init__(
        self, session: str, path: Path, listener: Callable[[Sequence[Entry]], None]
    ) -> None:
        self.session = session
        self.path = path
        self.prefix = prefix_of(session)
        end = last_of(path)
        self.last_seq = end.seq
        """The number of the newest entry; 0 if there is none."""
        self.last_at = end.at
        self._listener = listener
        self._encode = EntryEncoder().encode
        self._kept: list[Entry | bytes] = []
        """Entries, each replaced by its frame when the first viewer reads it."""
        self._first = self.last_seq + 1
        """The number of the first of them."""
        self._weights: list[int] = []
        self._weight = 0
        self._batches: dict[int, Batch] = {}
        """Batches since the last entry, by cursor: viewers that keep up share them."""
        self._watching: dict[Notify, None] = {}

    # As a sink of the journal

    def write(self, entries: Sequence[Entry]) -> None:
        """Keep `entries`, and notify the viewers."""
        if entries[0].seq <= self.last_seq:
            # The journal reports this, and writes no more here: no number has two entries.
            raise ValueError(f"entry {entries[0].seq} comes after entry {self.last_seq}")
        if entries[0].seq != self.last_seq + 1:
            self._forget()
        self._kept += entries
        weights = [len(entry.line) + WEIGHT for entry in entries]
        self._weights += weights
        self._weight += sum(weights)
        self.last_seq, self.last_at = entries[-1].seq, entries[-1].at
        self._first = self.last_seq - len(self._kept) + 1
        if self._weight > 2 * MEMORY:
            self._trim()
        if self._batches:
            self._batches.clear()
        try:
            self._listener(entries)
            for notify in [*self._watching]:
                notify(self.session)
        except Exception:  # noqa: BLE001 - a sink that raises gets no more entries
            LOG.exception("a viewer could not be notified")

    def close(self) -> None:
        """Do nothing: the session may be opened again."""

    # For viewers

    def add(self, notify: Notify) -> None:
        """Notify of new frames from now on."""
        self._watching[notify] = None

    def remove(self, notify: Notify) -> None:
        """Stop to notify."""
        self._watching.pop(notify, None)

    def ready(self, after: int) -> Batch | None:
        """Return the next frames after number `after` from memory; None if they are on disk."""
        if after >= self.last_seq:
            return _NOTHING
        if after + 1 < self._first:
            return None
        known = self._batches.get(after)
        if known is None:
            known = self._batches[after] = self._join(after)
        return known

    async def next(self, after: int) -> Batch:
        """Return the next frames after number `after`, from memory or from the file."""
        ready = self.ready(after)
        if ready is not None:
            return ready
        upto, prefix = max(after, self._first - 1), self.prefix
        found = await asyncio.to_thread(records_after, self.path, after, MOST_FRAMES, MOST_BYTES)
        found = [each for each in found if each[0] <= upto]
        if not found:
            # They could not be stored, or the file was removed or damaged.
            return Batch(lost=upto - after, upto=upto)
        lost = found[0][0] - after - 1
        frames = [frame_of_line(prefix, line) for _, line in found]
        return Batch(b"\n".join(frames).decode("utf-8", "replace"), found[-1][0], lost)

    def has(self, seq: int, at: float) -> bool:
        """Whether entry `seq` is the one of time `at`.

        It is another one if the entry that was shown could not be stored, and a server that was
        started since has given its number again.
        """
        if seq == self.last_seq:
            return at == self.last_at
        if seq < self._first:
            line = record_at(self.path, seq)
            return line is not None and at_of(line) == at
        kept = self._kept[seq - self._first]
        return at == (at_of(kept) if isinstance(kept, bytes) else kept.at)

    def _join(self, after: int) -> Batch:
        frames: list[bytes] = []
        size = 0
        for place in self._places(after):
            frame = self._frame(place)
            frames.append(frame)
            size += len(frame)
            if size >= MOST_BYTES or len(frames) >= MOST_FRAMES:
                break
        text = (frames[0] if len(frames) == 1 else b"\n".join(frames)).decode("utf-8", "replace")
        return Batch(text, after + len(frames))

    def _places(self, after: int) -> range:
        return range(max(0, after + 1 - self._first), len(self._kept))

    def _frame(self, place: int) -> bytes:
        kept = self._kept[place]
        if isinstance(kept, bytes):
            return kept
        frame = self._kept[place] = frame_of_line(self.prefix, self._encode(kept)[:-1])
        return frame

    def _trim(self) -> None:
        """Forget the oldest entries, half of them at once, so that each moves only once."""
        count = 0
        while self._weight > MEMORY and count < len(self._kept) - 1:
            self._weight -= self._weights[count]
            count += 1
        del self._kept[:count], self._weights[:count]
        self._first = self.last_seq - len(self._kept) + 1

    def _forget(self) -> None:
        self._kept.clear()
        self._weights.clear()
        self._weight = 0


_NOTHING = Batch()
