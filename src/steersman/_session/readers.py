"""Readers of a journal, which wait for entries that are not written yet.

Each reader has its own cursor. A slow reader lags; it never delays the session or another reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

from steersman._session.journal_writer import JournalSignal, JournalWait
from steersman.errors import ReaderLagged
from steersman.journal import Entry, Journal, Kind, Lagged
from steersman.journal.journal import CONVERSATION

log = logging.getLogger("steersman.session")

T = TypeVar("T")

Batches = AsyncIterator[Sequence[Entry]]

MOST_READY = 1000
"""Entries that `ready` decodes at once; meanwhile the event loop does nothing else."""


class JournalReader(AsyncIterator[T], Generic[T]):
    """Iterates over what `pick` returns for each entry, without None. Needs no closing."""

    def __init__(
        self,
        journal: Journal,
        growth: JournalSignal,
        pick: Callable[[Entry], T | None],
        *,
        after: int = 0,
        conversation_only: bool = False,
    ) -> None:
        self._journal = journal
        self._growth = growth
        self._waiting = growth.waiting(conversation_only=conversation_only)
        self._pick = pick
        self._seq = after
        self._picked: Iterator[T | None] = iter(())
        """Applies `pick` to the entries of `_batch` one by one, as items are requested."""
        self._batch: list[Entry] = []
        """The current entries. They stay decoded, for other readers, until the next batch."""
        self._is_last = False
        """Whether no entry after `_batch` is read."""

    def __aiter__(self) -> JournalReader[T]:
        return self

    async def __anext__(self) -> T:
        # One function: each call more costs a token that comes alone a microsecond.
        journal = self._journal
        while True:
            # Continues after the last entry, even if `pick` has raised for it.
            for picked in self._picked:
                if picked is not None:
                    return picked
            for entry in self._batch:
                if entry.decoded is not None:
                    entry.decoded = None
            self._batch = []
            if self._is_last:
                raise StopAsyncIteration
            if self._seq < journal.forgotten:
                await self._read_lost()
            elif self._seq < journal.last_seq:
                batch = journal.after(self._seq)
                self._seq = batch[-1].seq
                self._batch = self._relevant(batch)
                self._picked = map(self._pick, self._batch)
            elif self._growth.has_ended:
                self._is_last = True
            else:
                await JournalWait(self._waiting, asyncio.get_running_loop())

    def ready(self) -> list[T]:
        """Return the items that are there already, at most `MOST_READY`, without waiting.

        What `pick` raises for one of them is raised by the next `anext`.
        """
        found: list[T] = []
        try:
            for picked in islice(self._picked, MOST_READY):
                if picked is not None:
                    found.append(picked)  # noqa: PERF401 - those before an error are kept
        except Exception as error:  # noqa: BLE001 - raised in its turn
            self._picked = _RaisesFirst(error, self._picked)
        return found

    def _relevant(self, batch: list[Entry]) -> list[Entry]:
        return batch

    async def _read_lost(self) -> None:
        """Set `_picked` in place of entries that are no longer in memory."""
        lost = self._journal.lost_after(self._seq)
        self._is_last = True
        raise ReaderLagged(lost)


class _RaisesFirst(Iterator[T]):
    """Raises an error, and then iterates over the rest."""

    def __init__(self, error: Exception, rest: Iterator[T]) -> None:
        self._error: Exception | None = error
        self._rest = rest

    def __next__(self) -> T:
        error, self._error = self._error, None
        if error is not None:
            raise error
        return next(self._rest)


class FlatReader(AsyncIterator[T]):
    """Iterates over the items of the lists that another reader yields. Needs no closing."""

    def __init__(self, lists: AsyncIterator[Sequence[T]]) -> None:
        self._lists = lists
        self._items: Iterator[T] = iter(())

    async def __anext__(self) -> T:
        while True:
            for item in self._items:
                return item
            self._items = iter(await anext(self._lists))

    def ready(self) -> list[T]:
        """Return the items that are there already, without waiting."""
        found = [*self._items]
        if isinstance(self._lists, JournalReader):
            for each in self._lists.ready():
                found += each
        return found


class TurnReader(JournalReader[T]):
    """Reads the entries of one turn that are of certain kinds, until the turn settles."""

    def __init__(
        self,
        journal: Journal,
        growth: JournalSignal,
        pick: Callable[[Entry], T | None],
        *,
        after: int,
        uuid: str,
        kinds: frozenset[Kind],
    ) -> None:
        super().__init__(journal, growth, pick, after=after, conversation_only=True)
        self._uuid = uuid
        self._kinds = kinds

    def _relevant(self, batch: list[Entry]) -> list[Entry]:
        uuid, kinds = self._uuid, self._kinds
        if self._journal.last_settled >= batch[0].seq:
            batch = self._cut_after_settled(batch)
        if len(batch) == 1:
            (only,) = batch
            return batch if only.kind in kinds and uuid in only.turns else []
        return [entry for entry in batch if entry.kind in kinds and uuid in entry.turns]

    def _cut_after_settled(self, batch: list[Entry]) -> list[Entry]:
        for position, entry in enumerate(batch):
            if entry.kind is Kind.SETTLED and self._uuid in entry.turns:
                self._is_last = True
                return batch[: position + 1]
        return batch


class StoredReader(JournalReader[Entry | Lagged]):
    """Iterates over all entries, or those of some kinds, each once and in order.

    Entries that have left the memory are read from the sink, a batch at a time. A `Lagged` takes
    the place of those that are not there either. Entries in memory are as they came; those from a
    sink have no known secrets, as on disk.
    """

    def __init__(
        self,
        journal: Journal,
        growth: JournalSignal,
        stored: Callable[[int], Batches | None],
        *,
        after: int,
        kinds: frozenset[Kind] | None = None,
    ) -> None:
        """Read all entries, or those of `kinds`."""
        is_spoken = kinds is not None and kinds <= CONVERSATION
        super().__init__(journal, growth, _itself, after=after, conversation_only=is_spoken)
        self._kinds = kinds
        self._stored = stored
        self._batches: Batches | None = None
        """Set while entries are read from the sink."""

    async def _read_lost(self) -> None:
        batch = await self._next_batch()
        # More entries may have left the memory meanwhile.
        end = self._seq + self._journal.lost_after(self._seq)
        self._picked = self._of(batch, end)
        if batch and batch[-1].seq >= end:
            await self._leave()

    def _relevant(self, batch: list[Entry]) -> list[Entry]:
        kinds = self._kinds
        return batch if kinds is None else [entry for entry in batch if entry.kind in kinds]

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
                if self._kinds is None or entry.kind in self._kinds:
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
        if isinstance(batches, AsyncGenerator):
            try:
                await batches.aclose()
            except Exception as error:  # noqa: BLE001 - as above
                log.warning("a sink of the journal cannot be closed: %r", error)


async def _nothing() -> Batches:
    return
    yield ()


def _itself(entry: Entry) -> Entry | Lagged | None:
    return entry
