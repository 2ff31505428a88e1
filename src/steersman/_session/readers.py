"""Readings of a journal that wait for what is not written yet.

A reader has its own cursor: a slow one lags, it never holds up the session or another reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import ClassVar, Generic, TypeVar

from steersman.errors import ReaderLagged
from steersman.journal import Entry, Journal, Kind

__all__ = ["Growth", "Reading", "TurnReading"]

T = TypeVar("T")

WARM = 16
"""How far behind a reader messages stay decoded: more alive at once wake the garbage collector."""

NONE = Entry(0, 0.0, Kind.NOISE)
"""Stands for what lies behind a reader that has just begun."""


class Growth:
    """Wakes everyone who waits for the journal to grow, all at once."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self._listening: asyncio.Future[None] | None = None
        self.has_ended = False

    def wake(self, *, was_spoken: bool = True) -> None:
        """The journal has grown, or will not grow any more.

        Most readers only want the conversation: they sleep on unless some of it `was_spoken`.
        """
        waiting, self._waiting = self._waiting, None
        _let_go(waiting)
        if was_spoken:
            listening, self._listening = self._listening, None
            _let_go(listening)

    def end(self) -> None:
        """Nothing will be added."""
        self.has_ended = True
        self.wake()

    async def wait(self, *, for_speech: bool = False) -> None:
        """Return when the journal has grown or ended; with `for_speech`, by the conversation."""
        if self.has_ended:
            return
        loop = asyncio.get_running_loop()
        # Shielded: one reader's cancellation must not cancel the others' wait.
        if for_speech:
            self._listening = self._listening or loop.create_future()
            await asyncio.shield(self._listening)
        else:
            self._waiting = self._waiting or loop.create_future()
            await asyncio.shield(self._waiting)


def _let_go(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


class Reading(AsyncIterator[T], Generic[T]):
    """What `pick` makes of each entry, in order. Holds nothing that must be closed."""

    LAST: ClassVar[Kind | None] = None
    """What ends it, by kind."""

    def __init__(
        self,
        journal: Journal,
        growth: Growth,
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
        self._behind = [NONE] * WARM
        """The last ones that were looked at, still decoded for other readers."""
        self._entries: Iterator[tuple[Entry, Entry]] = iter(())
        """Those to look at, each with one that lies so far behind that it need not stay decoded."""
        self._is_over = False

    def __aiter__(self) -> Reading[T]:
        return self

    async def __anext__(self) -> T:
        while not self._is_over:
            # It goes on where it was left, also behind an entry whose `pick` has raised.
            for entry, passed in self._entries:
                passed.decoded = None
                if entry.kind is self.LAST:
                    self._is_over = True
                elif self._until is not None:
                    self._is_over = self._until(entry)
                picked = self._pick(entry)
                if picked is not None:
                    return picked
                if self._is_over:
                    raise StopAsyncIteration
            if lost := self._journal.lost_after(self._seq):
                return self._lagged(lost)
            await self._refill()
        raise StopAsyncIteration

    async def _refill(self) -> None:
        batch = self._journal.after(self._seq)
        if batch:
            self._seq = batch[-1].seq
            wanted = self._looked_at(batch)
            line = [*self._behind, *wanted]
            self._entries = zip(wanted, line, strict=False)
            self._behind = line[-WARM:]
        elif self._growth.has_ended:
            self._is_over = True
        else:
            await self._growth.wait(for_speech=self._for_speech)

    def _looked_at(self, batch: list[Entry]) -> list[Entry]:
        return batch

    def _lagged(self, lost: int) -> T:
        self._seq += lost
        if self._on_lag is None:
            self._is_over = True
            raise ReaderLagged(lost)
        return self._on_lag(lost)


class TurnReading(Reading[T]):
    """The same for the entries of one turn, of some kinds, until it settles."""

    LAST = Kind.SETTLED

    def __init__(
        self,
        journal: Journal,
        growth: Growth,
        pick: Callable[[Entry], T | None],
        *,
        after: int,
        uuid: str,
        kinds: frozenset[Kind],
    ) -> None:
        super().__init__(journal, growth, pick, after=after, for_speech=True)
        self._uuid = uuid
        self._kinds = kinds | {self.LAST}

    def _looked_at(self, batch: list[Entry]) -> list[Entry]:
        uuid, kinds = self._uuid, self._kinds
        return [entry for entry in batch if entry.kind in kinds and uuid in entry.turns]
