"""Readers of a journal, which wait for entries that are not written yet.

Each reader has its own cursor. A slow reader lags; it never delays the session or another reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

from steersman.errors import ReaderLagged
from steersman.journal import Entry, Journal, Kind

__all__ = ["JournalReader", "JournalSignal", "TurnReader"]

T = TypeVar("T")

SWEEP_AT = 32
"""Number of waiting futures at which cancelled ones are first removed."""


class JournalSignal:
    """Wakes all readers that wait for the journal to grow."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._waiting_for_conversation: list[asyncio.Future[None]] = []
        self._sweep_at = SWEEP_AT
        self.has_ended = False

    def wake(self, *, has_conversation: bool = True) -> None:
        """Wake readers after the journal has grown or ended.

        Most readers read only the conversation; they are woken only with `has_conversation`.
        """
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            _wake_all(waiting)
        if has_conversation and self._waiting_for_conversation:
            readers, self._waiting_for_conversation = self._waiting_for_conversation, []
            _wake_all(readers)

    def end(self) -> None:
        """Mark the journal as complete, and wake all readers."""
        self.has_ended = True
        self.wake()

    def wait(self, *, conversation_only: bool = False) -> asyncio.Future[None]:
        """Return a future that is done when the journal has grown or ended.

        With `conversation_only`, only growth of the conversation counts. Each reader gets its own
        future: a shared one needs a shield, which costs an iteration of the event loop.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting_for_conversation if conversation_only else self._waiting
        if self.has_ended:
            future.set_result(None)
        else:
            if len(waiting) >= self._sweep_at:
                # Futures of cancelled waits are still in the list.
                waiting[:] = [each for each in waiting if not each.done()]
                self._sweep_at = max(SWEEP_AT, 2 * len(waiting))
            waiting.append(future)
        return future


def _wake_all(waiting: list[asyncio.Future[None]]) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(None)


class JournalReader(AsyncIterator[T], Generic[T]):
    """Iterates over what `pick` returns for each entry, without None. Needs no closing."""

    def __init__(
        self,
        journal: Journal,
        growth: JournalSignal,
        pick: Callable[[Entry], T | None],
        *,
        after: int = 0,
        until: Callable[[Entry], bool] | None = None,
        on_lag: Callable[[int], T] | None = None,
        conversation_only: bool = False,
    ) -> None:
        self._conversation_only = conversation_only
        self._journal = journal
        self._growth = growth
        self._pick = pick
        self._seq = after
        self._until = until
        self._on_lag = on_lag
        self._picked: Iterator[T | None] = iter(())
        """Applies `pick` to the entries of `_batch` one by one, as items are requested."""
        self._batch: list[Entry] = []
        """The current entries. They stay decoded, for other readers, until the next batch."""
        self._is_last = False
        """Whether no entry after `_batch` is read."""
        self._has_ended = False

    def __aiter__(self) -> JournalReader[T]:
        return self

    async def __anext__(self) -> T:
        # Continues after the last entry, even if `pick` has raised for it.
        for picked in self._picked:
            if picked is not None:
                return picked
        return await self._read_next()

    async def _read_next(self) -> T:
        while not self._has_ended:
            if self._is_last:
                self._has_ended = True
            elif lost := self._journal.lost_after(self._seq):
                return self._lagged(lost)
            else:
                await self._refill()
                for picked in self._picked:
                    if picked is not None:
                        return picked
        raise StopAsyncIteration

    async def _refill(self) -> None:
        for entry in self._batch:
            if entry.decoded is not None:
                entry.decoded = None
        self._batch = []
        batch = self._journal.after(self._seq)
        if batch:
            self._seq = batch[-1].seq
            self._batch = self._relevant(batch)
            pick = self._pick if self._until is None else self._pick_until
            self._picked = map(pick, self._batch)
        elif self._growth.has_ended:
            self._has_ended = True
        else:
            await self._growth.wait(conversation_only=self._conversation_only)

    def _relevant(self, batch: list[Entry]) -> list[Entry]:
        return batch

    def _pick_until(self, entry: Entry) -> T | None:
        assert self._until is not None
        if self._is_last:
            return None
        self._is_last = self._until(entry)
        return self._pick(entry)

    def _lagged(self, lost: int) -> T:
        self._seq += lost
        if self._on_lag is None:
            self._has_ended = True
            raise ReaderLagged(lost)
        return self._on_lag(lost)


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
        return [entry for entry in batch if entry.kind in kinds and uuid in entry.turns]

    def _cut_after_settled(self, batch: list[Entry]) -> list[Entry]:
        for position, entry in enumerate(batch):
            if entry.kind is Kind.SETTLED and self._uuid in entry.turns:
                self._is_last = True
                return batch[: position + 1]
        return batch
