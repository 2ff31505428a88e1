"""Writes the journal of a session, which continues when the CLI is restarted, and wakes readers."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any

from msgspec import Struct

from steersman._json import Json, JsonDict
from steersman._protocol.events import StreamEventsArrived
from steersman._session.shared_memory import SHARED
from steersman.errors import Evidence, StartupTimeout
from steersman.journal import Entry, Kind
from steersman.messages.parsing import Message
from steersman.ports import Clock, Sink, SupportsLastSeq, SupportsOpen, SupportsRead


class JournalWriter:
    """Appends entries, wakes the readers, and passes the entries to the sink."""

    def __init__(self, memory: int, clock: Clock = time.time) -> None:
        self.journal = SHARED.journal(memory)
        self.signal = JournalSignal()
        self.clock = clock
        self.append = self.journal.append
        """Appends an entry; readers see it after the next `wake`."""
        self.append_partials = self.journal.append_partials
        self._sink: Sink | None = None
        self._stored: SupportsRead | None = None
        """The sink, if it can be read; also after the end."""
        self._unwritten: list[Entry] = []
        self._announced = 0
        self._holds_wakeups = False

    async def open(self, sink: Sink, timeout: float) -> None:
        """Open `sink`, continue its numbers, and pass every entry to it from now on.

        A sink that cannot be opened is closed.
        """
        try:
            if isinstance(sink, SupportsOpen):
                await _opened(sink, timeout)
            if isinstance(sink, SupportsLastSeq):
                self.journal.begin_after(sink.last_seq)
        except BaseException:
            sink.close()
            raise
        self.write_to(sink)

    def write_to(self, sink: Sink) -> None:
        """Pass every entry to `sink` from now on."""
        self._sink = sink
        self._stored = sink if isinstance(sink, SupportsRead) else None
        self.append = self._append_for_sink
        self.append_partials = self._append_partials_for_sink

    def _append_for_sink(self, *fields: Any, **options: Any) -> Entry:
        entry = self.journal.append(*fields, **options)
        self._unwritten.append(entry)
        return entry

    def _append_partials_for_sink(
        self,
        at: float,
        lines: Sequence[bytes],
        turns: tuple[str, ...],
        messages: Sequence[Message] | None = None,
    ) -> list[Entry]:
        entries = self.journal.append_partials(at, lines, turns, messages)
        self._unwritten += entries
        return entries

    def note(self, kind: Kind, turns: tuple[str, ...] = (), /, **details: Json) -> None:
        """Write an entry that is not a line of the CLI."""
        self.write(kind, details, turns)

    def write(self, kind: Kind, details: JsonDict, turns: tuple[str, ...] = ()) -> None:
        """Write an entry that is not a line of the CLI, with its details as a dict."""
        self.append(self.clock(), kind, b"", turns, details)
        if not self._holds_wakeups:
            self.wake()

    def fault(self, where: str, error: BaseException | str) -> None:
        """Record that a callback or server of the caller failed."""
        how = error if isinstance(error, str) else type(error).__name__
        self.note(Kind.FAULT, where=where, error=how)

    def hold_wakeups(self) -> None:
        """Hold wake-ups until `release_wakeups`, so that readers see a whole chunk at once."""
        self._holds_wakeups = True

    def release_wakeups(self, *, at_once: bool = False) -> None:
        """Wake the readers once for all entries since `hold_wakeups`."""
        self._holds_wakeups = False
        self.wake(at_once=at_once)

    def wake(self, *, at_once: bool = False) -> None:
        """Flush new entries to the sink and wake the readers, unless wake-ups are held.

        With `at_once` the readers run before this returns, if no task is running now.
        """
        if self._holds_wakeups:
            return
        if self._unwritten:
            self.flush()
        before, self._announced = self._announced, self.journal.last_seq
        wake = self.signal.wake_at_once if at_once else self.signal.wake
        wake(has_conversation=self.journal.last_spoken > before)

    def write_partials(self, arrived: StreamEventsArrived) -> None:
        """Write `stream_event` lines that arrived alone, and run their readers now."""
        self.append_partials(self.clock(), arrived.lines, arrived.turns, arrived.messages)
        self.wake(at_once=True)

    def end(self) -> None:
        """Close the sink and mark the journal as complete."""
        self.flush()
        if self._sink is not None:
            self._sink.close()
            self._sink = None
            self.append = self.journal.append
            self.append_partials = self.journal.append_partials
        self.signal.end()

    def stored(self, after: int) -> AsyncIterator[Sequence[Entry]] | None:
        """Return the entries after number `after` that the sink holds; None if it cannot be read.

        They have no known secrets; those in memory have.
        """
        self.flush()
        return None if self._stored is None else self._stored.read(after)

    def flush(self) -> None:
        """Pass the entries since the last flush to the sink."""
        if self._unwritten and self._sink is not None:
            entries, self._unwritten = self._unwritten, []
            self._sink.write(entries)


async def _opened(sink: SupportsOpen, timeout: float) -> None:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            await sink.open()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise StartupTimeout(
            f"a sink of the journal was not open after {timeout:g} s",
            hint="if it is only slow, raise startup=StartupLimits(spawn=...)",
            evidence=Evidence("journal"),
        ) from error


class JournalSignal:
    """Wakes all readers that wait for the journal to grow."""

    def __init__(self) -> None:
        self._waiting: list[JournalWait] = []
        self._waiting_for_conversation: list[JournalWait] = []
        self.has_ended = False

    def waiting(self, *, conversation_only: bool) -> list[JournalWait]:
        """Return the list of those that wait, for the growth of the conversation or any growth."""
        return self._waiting_for_conversation if conversation_only else self._waiting

    def wait(self) -> JournalWait:
        """Return the wait that ends when the journal has grown or ended."""
        loop = asyncio.get_running_loop()
        return JournalWait(self._waiting, loop, has_ended=self.has_ended)

    def wake(self, *, has_conversation: bool = True) -> None:
        """Wake readers after the journal has grown or ended.

        Most readers read only the conversation; they are woken only with `has_conversation`.
        """
        if self._waiting:
            _finish(self._waiting)
        if has_conversation and self._waiting_for_conversation:
            _finish(self._waiting_for_conversation)

    def wake_at_once(self, *, has_conversation: bool = True) -> None:
        """Do what `wake` does, but run the readers before this returns, if no task is running now.

        A task cannot run inside of another one.
        """
        spoken = self._waiting_for_conversation if has_conversation else []
        waiting = self._waiting + spoken
        if not waiting:
            return
        if asyncio.current_task() is not None:
            self.wake(has_conversation=has_conversation)
            return
        self._waiting.clear()
        spoken.clear()
        # All of them first: a reader that runs may cancel another one.
        for each in waiting:
            each.has_ended = True
        rest = iter(waiting)
        try:
            for each in rest:
                if each.wakeup is not None and each.context is not None:
                    each.context.run(each.wakeup, each)
        except BaseException:
            # A reader that exits the program must not keep the others from their end.
            for each in rest:
                each.finish()
            raise

    def end(self) -> None:
        """Mark the journal as complete, and wake all readers."""
        self.has_ended = True
        self.wake()


def _finish(waiting: list[JournalWait]) -> None:
    over = waiting.copy()
    waiting.clear()
    for each in over:
        each.finish()


class JournalWait(Struct, eq=False, weakref=False):
    """One wait of one task for a journal to grow.

    To asyncio it is a future: the names that tasks use are those of `asyncio.Future`. Unlike one,
    it can continue its task inside the callback that received a token, not in another iteration of
    the event loop. A token that comes alone finds the processor's caches cold, so its cost is the
    number of different functions that it passes through: this is one object, without a constructor
    in Python.
    """

    waiting: list[JournalWait]
    """The list of those that wait; this wait is in it until it has ended."""
    _loop: asyncio.AbstractEventLoop
    _asyncio_future_blocking: bool = False
    """Set here and reset by the task, as for every future."""
    has_ended: bool = False
    cancelled: asyncio.CancelledError | None = None
    """The error to raise, if the wait was cancelled."""
    wakeup: Callable[[Any], object] | None = None
    """Continues the task."""
    context: contextvars.Context | None = None
    """The context of the task."""

    def __await__(self) -> Generator[Any, None, None]:
        if not self.has_ended:
            self.waiting.append(self)
            self._asyncio_future_blocking = True
            yield self
        self.result()

    def finish(self) -> None:
        """End the wait; its task continues in the next iteration of the loop."""
        self.has_ended = True
        if self.wakeup is not None:
            self._loop.call_soon(self.wakeup, self, context=self.context)

    def add_done_callback(
        self, wakeup: Callable[[Any], object], *, context: contextvars.Context | None = None
    ) -> None:
        """Keep what continues the task, which calls this once."""
        self.wakeup, self.context = wakeup, context

    def result(self) -> None:
        """Raise `CancelledError` if the wait was cancelled."""
        if self.cancelled is not None:
            raise self.cancelled

    def cancel(self, msg: object = None) -> bool:
        """End the wait with `CancelledError`, unless it has ended."""
        if self.has_ended:
            return False
        self.waiting.remove(self)
        self.cancelled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self.finish()
        return True
