"""A reader of all entries: first those in a sink, then those in memory.

Entries in memory are as they came; those from a sink have no known secrets, as on disk.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from steersman._session.journal_writer import JournalSignal
from steersman._session.readers import JournalReader
from steersman.journal import Entry, Journal, Lagged

__all__ = ["StoredReader"]

log = logging.getLogger("steersman.session")

Batches = AsyncIterator[Sequence[Entry]]


class StoredReader(JournalReader[Entry | Lagged]):
    """Iterates over all entries, each once and in order.

    Entries that have left the memory are read from the sink, a batch at a time. A `Lagged` takes
    the place of those that are not there either.
    """

    def __init__(
        self,
        journal: Journal,
        growth: JournalSignal,
        stored: Callable[[int], Batches | None],
        *,
        after: int,
    ) -> None:
        super().__init__(journal, growth, _itself, after=after)
        self._stored = stored
        self._batches: Batches | None = None
        """Set while entries are read from the sink."""

    async def _read_lost(self) -> None:
        batch = await self._next_batch()
        # More entries may have left the memory meanwhile.
        end = self._seq + self._journal.lost_after(self._seq)
        self._picked = self._of(batch, end)
        if batch and batch[-1].seq > end:
            await self._leave()

    async def _refill(self) -> None:
        if self._batches is not None:
            await self._leave()
        await super()._refill()

    async def _next_batch(self) -> Sequence[Entry]:
        """Return the next batch from the sink; an empty one if it does not hold the next entry."""
        is_new = False
        try:
            while not is_new:
                is_new = self._batches is None
                if self._batches is None:
                    self._batches = self._stored(self._seq) or _nothing()
                async for batch in self._batches:
                    if batch and batch[-1].seq > self._seq:
                        return batch
                # It may end with what was written when it began: then there may be more by now.
                await self._leave()
        except Exception as error:  # noqa: BLE001 - the caller's own sink; `Lagged` reports the loss
            log.warning("a sink of the journal cannot be read: %r", error)
            self._batches = None
        return ()

    def _of(self, batch: Sequence[Entry], end: int) -> Iterator[Entry | Lagged]:
        """Yield the entries of `batch` up to `end`, and a `Lagged` for each gap between them."""
        for entry in batch:
            if self._seq < entry.seq <= end:
                yield from self._gap_before(entry.seq)
                self._seq = entry.seq
                yield entry
        if not batch or batch[-1].seq > end:
            yield from self._gap_before(end + 1)

    def _gap_before(self, seq: int) -> Iterator[Lagged]:
        gap = seq - 1 - self._seq
        if gap > 0:
            self._seq += gap
            yield Lagged(gap)

    async def _leave(self) -> None:
        """Stop reading from the sink: the next entry is in memory."""
        batches, self._batches = self._batches, None
        close = getattr(batches, "aclose", None)
        if close is not None:
            try:
                await close()
            except Exception as error:  # noqa: BLE001 - as above
                log.warning("a sink of the journal cannot be closed: %r", error)


async def _nothing() -> Batches:
    return
    yield ()


def _itself(entry: Entry) -> Entry | Lagged | None:
    return entry
