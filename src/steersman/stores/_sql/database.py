"""The port to a database that knows SQL: transactions, numbered changes, and news of them.

A table hands a function to `read` or `write`; it runs in the thread of the database, so that a
transaction never waits for the event loop of a caller, and can be made again if the confirmation
of a commit was lost. Names are written without NUL, which PostgreSQL has not, and lone surrogates.
"""

from __future__ import annotations

import abc
import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from steersman._background import BackgroundTasks
from steersman._portal.home_thread import HomeThread

T = TypeVar("T")
Rows = list[tuple[Any, ...]]

log = logging.getLogger("steersman.stores")


class Transaction(Protocol):
    """Statements that are all stored, or none; for `Database.read`, statements one by one."""

    async def run(self, statement: str, *values: Any) -> Rows:
        """Run a statement and return its rows.

        `?` is a value; `:now` is the time, and `:lease` the time by which leases count: near it,
        but never set.
        """
        ...

    async def scan(self, statement: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """As `run`, for large rows, which a file is only asked for as they are taken."""
        ...

    async def next_change(self, *also: str) -> int:
        """Return the number of the next change; other writers wait until this one has ended.

        `also` are statements without values that are run before: a server is asked once for all.
        """
        ...

    async def lock(self, *names: str) -> None:
        """Wait for other writers that have locked these names; hold the lock to the end."""
        ...


Work = Callable[[Transaction], Coroutine[Any, Any, T]]
"""Awaits nothing but the transaction. It is called again if the confirmation was lost, and must
then count once."""


class Database(abc.ABC):
    """A database with our tables. Any thread and event loop may use it. Errors are `StoreError`."""

    is_server = False
    """Whether each statement is a way to a server and back. Its entries of sessions have two more
    columns: their size, and the batch that they came in."""

    def __init__(self, name: str, close: Callable[[], Awaitable[None]], rest: float) -> None:
        """After `rest` seconds without work, or if it is forgotten, `close` closes connections.

        Later work opens them anew.
        """
        self.home = HomeThread(name, close, rest)
        self._observers: set[Callable[[], None]] = set()
        self._background = BackgroundTasks(log)
        self._signals: asyncio.Task[None] | None = None
        self._is_watching = False
        self._pid = os.getpid()

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be read or written."""
        return self.home.is_closed

    @property
    def faults(self) -> Mapping[str, str]:
        """What fails now in the background, with its last error; it is tried again."""
        return self._background.faults

    @abc.abstractmethod
    async def read(self, work: Work[T]) -> T:
        """Run `work`, which only reads. Two statements of it may see two states."""

    @abc.abstractmethod
    async def write(self, work: Work[T], *, is_vital: bool = False) -> T:
        """Run `work` in a transaction. What is vital must also survive a loss of power."""

    @abc.abstractmethod
    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in the thread. It awaits nothing but this database."""

    def observe(self, changed: Callable[[], None]) -> None:
        """Call `changed`, in the thread, whenever any process may have made a numbered change."""
        self.home.post(lambda: self._observe(changed))

    def stop_observing(self, changed: Callable[[], None]) -> None:
        """Call `changed` no more."""
        self.home.post(lambda: self._stop_observing(changed), starts=False)

    async def aclose(self) -> None:
        """Let what was begun end, and close the connections. May be called again."""
        # Before observers are called for the last time: one that looks then sees that it is closed.
        self.home.is_closed = True
        self.home.post(self._end_observing, starts=False)
        await self.home.aclose()

    def _observe(self, changed: Callable[[], None]) -> None:
        if self._pid != os.getpid():
            # What a parent process has observed.
            self._observers, self._is_watching, self._pid = set(), False, os.getpid()
            self._background = BackgroundTasks(log)
        self._observers.add(changed)
        if not self._is_watching:
            self._is_watching = True
            self.home.start(self._watch)

    async def _watch(self) -> None:
        """Watch for writes of other connections as long as there are observers."""
        while self._observers and not self.is_closed:
            self._signals = self._background.keep(
                "the news of the store",
                lambda: self._signal(self._notify),
                meanwhile="answers of other processes are noticed late",
            )
            # It may be needed again by the time that it has closed its connection.
            await asyncio.wait({self._signals})
        self._signals, self._is_watching = None, False

    def _stop_observing(self, changed: Callable[[], None]) -> None:
        self._observers.discard(changed)
        if not self._observers:
            self._cancel_signals()

    def _end_observing(self) -> None:
        self._notify()
        self._cancel_signals()

    def _cancel_signals(self) -> None:
        # Once: a second cancellation would end the closing of its connection.
        if self._signals is not None and not self._signals.cancelling():
            self._signals.cancel()

    def _notify(self) -> None:
        for changed in [*self._observers]:
            try:
                changed()
            except RuntimeError:
                # The event loop of the observer is closed.
                self._observers.discard(changed)

    @abc.abstractmethod
    async def _signal(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever another connection may have written, until cancelled."""


_ODD = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def to_plain(text: str) -> str:
    """Return `text` as one that every database holds, and that no other text becomes."""
    if not _ODD.search(text):
        return text
    return _ODD.sub(lambda odd: "\\\\" if odd[0] == "\\" else f"\\u{ord(odd[0]):04x}", text)


def from_plain(plain: str) -> str:
    """Return the string that `to_plain` was given."""
    if "\\" not in plain:
        return plain
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", plain)
