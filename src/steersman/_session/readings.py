"""Readings of a session's journal, each at its own pace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from steersman._session.journal_writer import JournalWriter
from steersman._session.readers import JournalReader, TurnReader
from steersman._session.turn import LINES
from steersman.errors import ChannelClosed, UsageError
from steersman.journal import Entry, Kind, Lagged
from steersman.messages.parsing import Message

__all__ = ["Readings"]

T = TypeVar("T")


class Readings:
    """What a session offers to those who watch it."""

    def __init__(self, log: JournalWriter, *, shows_partials: bool) -> None:
        self._log = log
        shown = {Kind.MESSAGE, Kind.PARTIAL} if shows_partials else {Kind.MESSAGE}
        self.shown: frozenset[Kind] = frozenset(shown)
        """The entries that are messages for people, under this session's options."""

    @property
    def last_seq(self) -> int:
        """The number of the newest journal entry."""
        return self._log.journal.last_seq

    def messages(self, *, after: int = 0) -> AsyncIterator[Message]:
        """Every message of the session, from entry number `after` on, until it ends.

        Raises `ReaderLagged` when some of them are gone from memory.
        """
        shown = self.shown
        return self.reading(
            lambda entry: entry.message if entry.kind in shown else None,
            after=after,
            for_speech=True,
        )

    def raw(self, *, after: int = 0) -> AsyncIterator[bytes]:
        """The lines of the conversation as they came, without control lines."""
        return self.reading(
            lambda e: e.line if e.kind in LINES else None, after=after, for_speech=True
        )

    def journal(self, *, after: int = 0) -> AsyncIterator[Entry | Lagged]:
        """Everything that happened, by sequence number; `Lagged` where entries are gone."""

        def pick(entry: Entry) -> Entry | Lagged | None:
            return entry

        return self.reading(pick, after=after, on_lag=Lagged)

    def turn_reading(
        self, uuid: str, kinds: frozenset[Kind], pick: Callable[[Entry], T | None], after: int
    ) -> AsyncIterator[T]:
        """What `pick` makes of a turn's entries of these `kinds`, until it settles."""
        log = self._log
        return TurnReader(log.journal, log.signal, pick, after=after, uuid=uuid, kinds=kinds)

    def reading(
        self,
        pick: Callable[[Entry], T | None],
        *,
        after: int = 0,
        until: Callable[[Entry], bool] | None = None,
        on_lag: Callable[[int], T] | None = None,
        for_speech: bool = False,
    ) -> AsyncIterator[T]:
        """What `pick` makes of each entry, for readings of your own; `None` is passed over.

        With `for_speech` only lines of the conversation wake the reader, and the ends of turns.
        """
        if isinstance(after, bool) or not isinstance(after, int) or after < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("after", after, "a sequence number, 0 or more")
        if not callable(pick):
            raise UsageError("pick", pick, "a function of an entry")
        if not self._log.journal.last_seq:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        log = self._log
        return JournalReader(
            log.journal,
            log.signal,
            pick,
            after=after,
            until=until,
            on_lag=on_lag,
            for_speech=for_speech,
        )
