"""The table of journals, a `Sink` that writes to it in batches, and those who read it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future
from dataclasses import replace

from steersman.errors import StoreError, StoreTooNew, UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import TORN, Record, line_of, read_line
from steersman.journal.redaction import MARK
from steersman.ports import Conversation
from steersman.stores._sql.database import Database, Transaction, to_plain

log = logging.getLogger("steersman.stores")

GATHER = 0.05
"""Seconds for which entries are gathered before they are written."""
MOST_ENTRIES, MOST_SIZE = 1000, 4 << 20
"""Entries, and bytes of their lines, in one transaction."""
OVERHEAD = 256
"""Bytes that an entry takes besides its line."""
RETRY = 0.5
"""Seconds until a store that failed is tried again."""
CHUNK = 200
"""Entries that are read at once."""
SOON, LATE, SLOWER = 0.05, 0.5, 1.3
"""Seconds between two looks for new entries: after some came, at most, and how it grows."""

AT_ONCE = 200
"""Rows in one statement."""
ADD = "INSERT INTO steersman_journals (conversation, seq, entry) VALUES "
RANGE = "SELECT seq, entry FROM steersman_journals WHERE conversation = ? AND seq BETWEEN ? AND ?"
READ = (
    "SELECT seq, entry FROM steersman_journals WHERE conversation = ? AND seq > ?"
    " ORDER BY seq LIMIT ?"
)


class JournalTable:
    """The entries of journals, as text; a number is stored once."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.unstored: dict[str, int] = {}
        """The last numbers of journals that were closed while entries waited or were lost."""

    async def append(self, conversation: str, entries: Sequence[tuple[int, str]]) -> int:
        """Store entries with their numbers. One whose number is there already is left out.

        Returns how many were left out because another entry has their number.
        """
        place = to_plain(conversation)
        is_server = self.database.is_server
        end = " ON CONFLICT DO NOTHING" + (" RETURNING seq" if is_server else "")

        async def work(tx: Transaction) -> int:
            left_out = 0
            for begin in range(0, len(entries), AT_ONCE):
                some = entries[begin : begin + AT_ONCE]
                values = [value for seq, text in some for value in (place, seq, text)]
                rows = ", ".join(["(?, ?, ?)"] * len(some))
                added = await tx.run(f"{ADD}{rows}{end}", *values)
                count = len(added) if is_server else (await tx.run("SELECT changes()"))[0][0]
                if count < len(some):
                    found = await tx.run(RANGE, place, some[0][0], some[-1][0])
                    known: dict[int, str] = dict(found)
                    left_out += sum(known.get(seq) != text for seq, text in some)
            return left_out

        return await self.database.write(work)

    async def last_seq(self, conversation: str) -> int:
        """Return the greatest number; 0 if there is none."""

        async def work(tx: Transaction) -> int:
            ((last,),) = await tx.run(
                "SELECT max(seq) FROM steersman_journals WHERE conversation = ?",
                to_plain(conversation),
            )
            return int(last or 0)

        return await self.database.read(work)

    async def read(self, conversation: str, after: int, most: int) -> list[tuple[int, str]]:
        """Return the entries after number `after` with their numbers, in order, `most` at most."""

        async def work(tx: Transaction) -> list[tuple[int, str]]:
            found = await tx.run(READ, to_plain(conversation), after, most)
            return [(seq, text) for seq, text in found]

        return await self.database.read(work)


class StoredJournal:
    """Writes the journal of one conversation to a store: `store.sink(conversation)`.

    Entries are written some 50 ms after they came, in order. `write` never raises. While the store
    cannot be reached, up to `memory` bytes wait, and one warning is logged; what comes after that
    is lost, and is counted. So are entries whose numbers another session has used. Other processes
    read with `store.entries()` and `store.follow()`.
    """

    def __init__(self, table: JournalTable, conversation: str, memory: int) -> None:
        _check_memory(memory)
        self.conversation = conversation
        self.failure = ""
        """Why nothing is written at present; empty while writing works."""
        self.lost = 0
        """How many entries were lost: with the store away, or to another session of the journal."""
        self.last_seq = 0
        """The number of the last entry that the store had at `open`, or that was given since."""
        self._table = table
        self._memory = memory
        self._lock = threading.Lock()
        self._waiting: deque[Entry] = deque()
        self._size = 0
        self._is_flushing = False
        self._flushed: list[Future[None]] = []
        self._is_closed = False
        self._is_shared = False
        """Whether another session has written entries with the same numbers."""
        self._pid = os.getpid()

    async def open(self) -> None:
        """Ask the store for the number of the last entry. Raises `StoreError`.

        Entries that this process has not stored, or never could, have numbers too.
        """
        found = await self._table.last_seq(self.conversation)
        given = self._table.unstored.get(self.conversation, 0)
        self.last_seq = max(self.last_seq, given, found)

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the next entries soon; never raises. A forked copy of the process writes none."""
        if not entries or self._is_closed or self._pid != os.getpid():
            return
        if self._table.database.is_closed:
            self._give_up(len(entries))
            return
        with self._lock:
            for entry in entries:
                weight = len(entry.line) + OVERHEAD
                if self._size + weight > self._memory:
                    self.lost += 1
                    continue
                self._waiting.append(entry)
                self._size += weight
            self.last_seq = max(self.last_seq, entries[-1].seq)
            starts, self._is_flushing = not self._is_flushing, True
        if starts:
            self._table.database.home.start(self._flush)

    def close(self) -> None:
        """Take no more entries. Those that wait are still written. May be called again."""
        self._is_closed = True
        with self._lock:
            if self._waiting or self.lost:
                self._table.unstored[self.conversation] = self.last_seq

    async def flush(self) -> None:
        """Wait until all entries that were given before are stored.

        Raises `StoreError` if the store cannot be reached; they wait on.
        """
        done: Future[None] = Future()
        with self._lock:
            if not self._is_flushing:
                return
            self._flushed.append(done)
        await asyncio.wrap_future(done)

    async def read(self, after: int = 0) -> AsyncGenerator[list[Entry]]:
        """Yield the entries after number `after`, in chunks, with those that were just written."""
        await self.flush()
        async for _, chunk in _chunks(self._table, self.conversation, after):
            yield chunk

    async def _flush(self) -> None:
        """Write until nothing waits; runs in the thread of the store."""
        await asyncio.sleep(0.0 if self._table.database.is_closed else GATHER)
        while batch := self._next_batch():
            texts = [(entry.seq, _text_of(entry)) for entry in batch]
            try:
                left_out = await self._table.append(self.conversation, texts)
            except Exception as error:  # noqa: BLE001 - a sink never raises
                self._failed(error)
                if self._table.database.is_closed or isinstance(error, StoreTooNew):
                    self._give_up()
                else:
                    await asyncio.sleep(RETRY)
                continue
            self._worked(batch, left_out)

    def _next_batch(self) -> list[Entry]:
        """Return the entries to write next; without any, notify those who wait for the last."""
        batch: list[Entry] = []
        with self._lock:
            size = 0
            for entry in self._waiting:
                if len(batch) == MOST_ENTRIES or size > MOST_SIZE:
                    break
                batch.append(entry)
                size += len(entry.line)
            self._is_flushing = bool(batch)
        if not batch:
            self._notify_flushed(None)
        return batch

    def _notify_flushed(self, error: Exception | None) -> None:
        with self._lock:
            flushed, self._flushed = self._flushed, []
        for done in flushed:
            if not done.set_running_or_notify_cancel():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def _worked(self, batch: list[Entry], left_out: int) -> None:
        if left_out and not self._is_shared:
            self._is_shared = True
            log.warning(
                "the journal of %r loses entries: another session writes it at the same time",
                self.conversation,
            )
        with self._lock:
            self.lost += left_out
            for entry in batch:
                self._waiting.popleft()
                self._size -= len(entry.line) + OVERHEAD
        if self.failure:
            log.warning(
                "the journal of %r is written again; entries lost so far: %d",
                *(self.conversation, self.lost),
            )
            self.failure = ""

    def _failed(self, error: Exception) -> None:
        if not self.failure:
            log.warning("the journal of %r cannot be written: %s", self.conversation, error)
        self.failure = str(error)
        self._notify_flushed(error)

    def _give_up(self, more: int = 0) -> None:
        self._is_closed = True
        with self._lock:
            self.lost += len(self._waiting) + more
            self._waiting.clear()
            self._size = 0
        self.failure = self.failure or "the store is closed"
        log.warning(
            "the journal of %r is no longer written: %s; entries lost: %d",
            *(self.conversation, self.failure, self.lost),
        )


def name_of(conversation: str | Conversation) -> str:
    """Return the name under which a journal is stored. Raises `UsageError`."""
    name = conversation.key if isinstance(conversation, Conversation) else conversation
    _check_name(name)
    return name


def _check_memory(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise UsageError("memory", given, "a number of bytes, 0 or more")


def _check_name(given: object) -> None:
    if not (isinstance(given, str) and given):
        raise UsageError("conversation", given, "a key or session id, or a Conversation")


async def stored_entries(
    table: JournalTable, conversation: str, after: int
) -> AsyncGenerator[Entry]:
    """Yield the stored entries after number `after`. Raises `StoreError`."""
    async for _, chunk in _chunks(table, conversation, after):
        for entry in chunk:
            yield entry


async def follow_entries(
    table: JournalTable, conversation: str, after: int
) -> AsyncGenerator[Entry]:
    """Yield the stored entries after number `after`, and new ones as they come.

    While the store cannot be reached, it waits. Ends when the store is closed.
    """
    wait, is_failing = SOON, False
    while not table.database.is_closed:
        try:
            async for last, chunk in _chunks(table, conversation, after):
                after, wait = last, SOON
                for entry in chunk:
                    yield entry
            is_failing = False
        except StoreTooNew:
            raise
        except StoreError as error:
            if not (is_failing or table.database.is_closed):
                log.warning("the journal of %r cannot be read: %s", conversation, error)
            is_failing = True
        await asyncio.sleep(wait)
        wait = min(wait * SLOWER, LATE)


async def _chunks(
    table: JournalTable, conversation: str, after: int
) -> AsyncGenerator[tuple[int, list[Entry]]]:
    """Yield the stored entries in chunks, each with the number of its last row."""
    _check_after(after)
    last = after
    while True:
        rows = await table.read(conversation, last, CHUNK)
        if rows:
            last = rows[-1][0]
            found = (_entry_of(seq, text) for seq, text in rows)
            yield last, [entry for entry in found if entry is not None]
        if len(rows) < CHUNK:
            return


def _check_after(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise UsageError("after", given, "the number of an entry, 0 or more")


def _text_of(entry: Entry) -> str:
    record = Record(entry.seq, entry.at, entry.kind.value, entry.line, entry.turns)
    try:
        return line_of(replace(record, details=dict(entry.details))).decode().rstrip("\n")
    except Exception as error:  # noqa: BLE001 - details of the caller's code; a sink never raises
        # What cannot be encoded is not written in part.
        shown = MARK.encode() if entry.line else b""
        unwritable = {"unwritable": type(error).__name__}
        return line_of(replace(record, line=shown, details=unwritable)).decode().rstrip("\n")


def _entry_of(seq: int, text: str) -> Entry | None:
    """Return the entry of a row. None for one of a kind that this release does not know."""
    found = read_line(text.encode())
    if isinstance(found, Record) and found.kind != TORN:
        return replace(found, seq=seq).entry
    return Entry(seq, 0.0, Kind.NOISE, text.encode(), details={"torn": True})
