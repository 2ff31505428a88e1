"""Readings of a journal that wait for what is not written yet.

A reader has its own cursor: a slow one lags, it never holds up the session or another reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

from steersman.errors import ReaderLagged
from steersman.journal import Entry, Journal, Kind

__all__ = ["JournalReader", "JournalSignal", "TurnReader"]

T = TypeVar("T")

CROWD = 32
"""So many may wait before those that were cancelled are looked for."""


class JournalSignal:
    """Wakes everyone who waits for the journal to grow, all at once."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._listening: list[asyncio.Future[None]] = []
        self._crowd = CROWD
        self.has_ended = False

    def wake(self, *, was_spoken: bool = True) -> None:
        """The journal has grown, or will not grow any more.

        Most readers only want the conversation: they sleep on unless some of it `was_spoken`.
        """
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            _let_go(waiting)
        if was_spoken and self._listening:
            listening, self._listening = self._listening, []
            _let_go(listening)

    def end(self) -> None:
        """Nothing will be added."""
        self.has_ended = True
        self.wake()

    def wait(self, *, for_speech: bool = False) -> asyncio.Future[None]:
        """Done when the journal has grown or ended; with `for_speech`, by the conversation.

        Everyone has one of their own: to share one takes a shield, and with it a round of the loop.
        """
        own: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._listening if for_speech else self._waiting
        if self.has_ended:
            own.set_result(None)
        else:
            if len(waiting) >= self._crowd:
                # A wait that was cancelled is still in the list.
                waiting[:] = [each for each in waiting if not each.done()]
                self._crowd = max(CROWD, 2 * len(waiting))
            waiting.append(own)
        return own


def _let_go(waiting: list[asyncio.Future[None]]) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(None)


class JournalReader(AsyncIterator[T], Generic[T]):
    """What `pick` makes of each entry, in order. Holds nothing that must be closed."""

    def __init__(
        self,
        journal: Journal,
        growth: JournalSignal,
        pick: Callable[[Entry], T | None],
        *,
        after: int = 0,
        until: Callable[[Entry], bool] | None = None,
        on_lag: Callable[[int], T] | None = None,
        for_speech: bool = False,
    ) -> None:
        self._for_speech = for_speech
        self._journal = journal
        self._growth = growth
        self._pick = pick
        self._seq = after
        self._until = until
        self._on_lag = on_lag
        self._picked: Iterator[T | None] = iter(())
        """What is made of the entries at hand, one by one, as somebody asks."""
        self._at_hand: list[Entry] = []
        """They stay decoded for other readers until we go on."""
        self._is_last = False
        """Whether nothing counts behind them."""
        self._is_over = False

    def __aiter__(self) -> JournalReader[T]:
        return self

    async def __anext__(self) -> T:
        # It goes on where it was left, also behind an entry whose `pick` has raised.
        for picked in self._picked:
            if picked is not None:
                return picked
        return await self._go_on()

    async def _go_on(self) -> T:
        while not self._is_over:
            if self._is_last:
                self._is_over = True
            elif lost := self._journal.lost_after(self._seq):
                return self._lagged(lost)
            else:
                await self._refill()
                for picked in self._picked:
                    if picked is not None:
                        return picked
        raise StopAsyncIteration

    async def _refill(self) -> None:
        for entry in self._at_hand:
            if entry.decoded is not None:
                entry.decoded = None
        self._at_hand = []
        batch = self._journal.after(self._seq)
        if batch:
            self._seq = batch[-1].seq
            self._at_hand = self._looked_at(batch)
            pick = self._pick if self._until is None else self._pick_until
            self._picked = map(pick, self._at_hand)
        elif self._growth.has_ended:
            self._is_over = True
        else:
            await self._growth.wait(for_speech=self._for_speech)

    def _looked_at(self, batch: list[Entry]) -> list[Entry]:
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
            self._is_over = True
            raise ReaderLagged(lost)
        return self._on_lag(lost)


class TurnReader(JournalReader[T]):
    """The same for the entries of one turn, of some kinds, until it settles."""

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
        super().__init__(journal, growth, pick, after=after, for_speech=True)
        self._uuid = uuid
        self._kinds = kinds

    def _looked_at(self, batch: list[Entry]) -> list[Entry]:
        uuid, kinds = self._uuid, self._kinds
        if self._journal.last_settled >= batch[0].seq:
            batch = self._up_to_the_end(batch)
        return [entry for entry in batch if entry.kind in kinds and uuid in entry.turns]

    def _up_to_the_end(self, batch: list[Entry]) -> list[Entry]:
        for position, entry in enumerate(batch):
            if entry.kind is Kind.SETTLED and self._uuid in entry.turns:
                self._is_last = True
                return batch[: position + 1]
        return batch
