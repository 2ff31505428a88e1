"""Reads journal files: whole, from a number on, and while another process writes them.

The format is that of `journal.files`. A number is found by a search in halves, if numbers continue
over all tracks; in files of earlier releases they do not, and then every line is read.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from steersman.errors import StoreError, UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import FORMAT, TORN, Header, read_line

CHUNK = 256 * 1024
"""Bytes that are read at once."""
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.25
"""Seconds between two looks at a file that another process writes."""

Identity: TypeAlias = tuple[int, int]
"""Device and inode of a file."""


class EntryLines:
    """Turns the bytes of a journal file, in chunks of any size, into entries.

    A line that cannot be read, such as the last one of a killed host program, is an entry of kind
    `NOISE` with `details["torn"]`; it has the number after that of the last entry before it.
    """

    def __init__(self, after: int = 0) -> None:
        """Leave out entries up to number `after`; with 0, none."""
        self._after = after or -1
        self._seq = 0
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Entry]:
        """Return the entries of the lines that `data` completes."""
        end = data.rfind(b"\n")
        if end < 0:
            self._rest += data
            return []
        whole = bytes(self._rest) + data[:end]
        self._rest = bytearray(data[end + 1 :])
        return [entry for line in whole.split(b"\n") for entry in self._entry_on(line)]

    def finish(self) -> list[Entry]:
        """Return the entry of a last line without a newline."""
        line, self._rest = bytes(self._rest), bytearray()
        return self._entry_on(line)

    def _entry_on(self, line: bytes) -> list[Entry]:
        found = read_line(line) if line.strip() else None
        if isinstance(found, Header):
            self._seq = max(self._seq, found.after or 0)
        if found is None or isinstance(found, Header):
            return []
        if found.kind == TORN:
            entry = Entry(self._seq + 1, 0.0, Kind.NOISE, found.line, details={"torn": True})
        else:
            self._seq = found.seq
            known = found.entry
            if known is None:
                return []
            entry = known
        return [entry] if entry.seq > self._after else []


def read_journal(path: str | os.PathLike[str], after: int = 0) -> Iterator[Entry]:
    """Yield the entries of a journal file after number `after`, for example for `replay`.

    A line that cannot be read, such as the last one of a killed host program, is an entry of kind
    `NOISE` with `details["torn"]`. Known secrets were removed when the file was written. In a file
    of an earlier release, where each session begins with number 1, a number occurs more than once:
    every entry with a number above `after` is yielded. Raises `UsageError` if the file is not a
    journal.
    """
    _check_after(after)
    file = _open(path)
    try:
        _check_header(path, file.readline())
        file.seek(start_of(file, after))
    except BaseException:
        file.close()
        raise
    return _entries_in(file, after)


def _entries_in(file: BinaryIO, after: int) -> Iterator[Entry]:
    lines = EntryLines(after)
    with file:
        while data := file.read(CHUNK):
            yield from lines.feed(data)
        yield from lines.finish()


def follow_journal(
    path: str | os.PathLike[str], after: int = 0, *, idle: float | None = None
) -> AsyncGenerator[Entry, None]:
    """Yield the entries of a journal file after number `after`, also those yet to be written.

    For a journal that another process writes. It does not end by itself, because the next session
    may continue the file; an entry of kind `PHASE` marks the end of a session. With `idle` it ends
    when no entry came for that many seconds. To end it earlier, leave the loop and call `aclose()`.
    A last line that is not whole yet is left until it is. Raises `UsageError` if the file is not a
    journal, and `StoreError` if it was removed, replaced or cut off meanwhile.
    """
    _check_after(after)
    is_time = isinstance(idle, int | float) and not isinstance(idle, bool) and idle > 0
    if idle is not None and not is_time:
        raise UsageError("idle", idle, "seconds above 0, or None")
    _open(path).close()
    return _follow(path, after, idle)


async def _follow(
    path: str | os.PathLike[str], after: int, idle: float | None
) -> AsyncGenerator[Entry, None]:
    with _open(path) as file:
        followed = _Followed(path, file, after)
        loop = asyncio.get_running_loop()
        pause, last = FIRST_PAUSE, loop.time()
        while True:
            entries = followed.next()
            for entry in entries or ():
                yield entry
            if entries:
                pause, last = FIRST_PAUSE, loop.time()
            elif idle is not None and loop.time() - last >= idle:
                return
            if entries is None:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                await asyncio.sleep(0)


class _Followed:
    """A file that another process writes, read up to some place."""

    def __init__(self, path: str | os.PathLike[str], file: BinaryIO, after: int) -> None:
        self._path = path
        self._file = file
        self._after = after
        self._lines = EntryLines(after)
        self._position = -1
        """Where to read on; -1 while the first line is not whole."""

    def next(self) -> list[Entry] | None:
        """Return the entries in the next chunk; None if the file has not grown."""
        self._check_in_place()
        if self._position < 0 and not self._begin():
            return None
        self._file.seek(self._position)
        data = self._file.read(CHUNK)
        self._position += len(data)
        return self._lines.feed(data) if data else None

    def _begin(self) -> bool:
        self._file.seek(0)
        line = self._file.readline()
        may_be_header = HEADER_BEGINS.startswith(line[: len(HEADER_BEGINS)])
        if may_be_header and not line.endswith(b"\n"):
            return False
        _check_header(self._path, line)
        self._position = start_of(self._file, self._after)
        return True

    def _check_in_place(self) -> None:
        """Raise `StoreError` unless the file is still at its path, with what was read of it."""
        opened, there = os.fstat(self._file.fileno()), None
        with suppress(OSError):
            there = Path(self._path).stat()
        if there is None:
            what = "removed"
        elif (there.st_dev, there.st_ino) != (opened.st_dev, opened.st_ino):
            what = "replaced by another one"
        elif opened.st_size < self._position:
            what = "cut off"
        else:
            return
        raise StoreError(
            f"the journal {os.fspath(self._path)} was {what} while it was followed",
            hint="do not rotate a journal; to read the file that is there now, follow it again",
        )


def identity_of(number: int) -> Identity:
    """Return device and inode of the open file `number`."""
    found = os.fstat(number)
    return found.st_dev, found.st_ino


class StoredEntries(AsyncIterator[list[Entry]]):
    """The entries of a file in batches, for a reader in this process. Needs no closing.

    Ends at the end of the file, and if another file is in its place.
    """

    def __init__(self, path: Path, identity: Identity, after: int, chunk: int = CHUNK) -> None:
        self._chunk = chunk
        self._path = path
        self._identity = identity
        self._after = after
        self._lines = EntryLines(after)
        self._position = -1

    async def __anext__(self) -> list[Entry]:
        while data := self._next_chunk():
            if entries := self._lines.feed(data):
                return entries
            await asyncio.sleep(0)
        raise StopAsyncIteration

    def _next_chunk(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                if identity_of(file.fileno()) != self._identity:
                    return b""
                if self._position < 0:
                    self._position = start_of(file, self._after)
                file.seek(self._position)
                data = file.read(self._chunk)
        except OSError:
            return b""
        self._position += len(data)
        return data


# Checks


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise UsageError("path", str(path), f"a file that can be read ({error.strerror})") from None


def _check_header(path: str | os.PathLike[str], line: bytes) -> None:
    header = read_line(line)
    if not isinstance(header, Header) or header.format > FORMAT:
        raise UsageError("path", str(path), f"a journal of format {FORMAT}")


def _check_after(after: object) -> None:
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise UsageError("after", after, "a sequence number, 0 or more")


HEADER_BEGINS = b'{"journal":'
NEAR = 64 * 1024
"""Bytes before a number that are read line by line instead of searched."""

_NUMBERED = re.compile(rb'\n\{"seq":(\d+)')


@dataclass(frozen=True, slots=True)
class Examined:
    """What the next writer of a file must know."""

    size: int = 0
    track: int = 0
    """The number of the next track."""
    last_seq: int = 0
    """The greatest number; a line at the end that cannot be read has one too."""
    is_torn: bool = False
    """Whether the last line has no newline."""


def examine(path: Path, number: int) -> Examined:
    """Look through the open file `number`. Raises `UsageError` if it is not a journal."""
    size = os.fstat(number).st_size
    if not size:
        return Examined()
    with mmap.mmap(number, size, access=mmap.ACCESS_READ) as data:
        if data[: len(HEADER_BEGINS)] != HEADER_BEGINS:
            raise UsageError("journal", str(path), "a new file, or one with a journal")
        last_seq, track, begins, ends = 0, 1, size, size
        while begins > 0:
            begins = data.rfind(b"\n" + HEADER_BEGINS, 0, begins) + 1
            header = _header_at(data, begins)
            if header is None and begins > 0:
                # A header that was cut off is a line of the track before it.
                continue
            if header is not None and header.format > FORMAT:
                hint = "a later release of steersman wrote it; update steersman"
                raise UsageError("journal", str(path), f"a journal of format {FORMAT}", hint=hint)
            last_seq = max(last_seq, _greatest(data, begins, ends, header))
            track = max(track, 0 if header is None else header.track + 1)
            if header is not None and header.after is not None:
                break
            ends = begins
        return Examined(size, track, last_seq, data[-1:] != b"\n")


def _greatest(data: mmap.mmap, begins: int, ends: int, header: Header | None) -> int:
    """Return the greatest number between two places of the file."""
    last, is_torn, end = 0, False, ends
    while end > begins and not last:
        begin = max(begins, data.rfind(b"\n", begins, end - 1) + 1)
        line = data[begin:end].strip()
        read = read_line(line) if line else None
        if isinstance(read, Header):
            last = read.after or 0
            break
        if read is not None:
            last, is_torn = read.seq, is_torn or read.kind == TORN
        end = begin
    if header is None or header.after is None:
        # Sessions that wrote at the same time have mixed their numbers.
        found = (int(each[1]) for each in _NUMBERED.finditer(data, begins, ends))
        last = max(last, max(found, default=0))
    return last + is_torn


def _header_at(data: mmap.mmap, begins: int) -> Header | None:
    ends = data.find(b"\n", begins)
    found = read_line(data[begins : len(data) if ends < 0 else ends])
    return found if isinstance(found, Header) else None


def start_of(file: BinaryIO, after: int) -> int:
    """Return a place at or before the first entry after number `after`, at the start of a line."""
    size = os.fstat(file.fileno()).st_size
    if not after or size <= NEAR:
        return 0
    with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
        begins, ends = 0, size
        for at, header in _headers(data):
            if header.after is None:
                return 0
            if header.after <= after:
                begins = at
            else:
                ends = min(ends, at)
        return _search(data, begins, ends, after)


def _headers(data: mmap.mmap) -> Iterator[tuple[int, Header]]:
    """Yield every header that can be read, with its place."""
    at = 0
    while True:
        header = _header_at(data, at)
        if header is not None:
            yield at, header
        at = data.find(b"\n" + HEADER_BEGINS, at) + 1
        if not at:
            return


def _search(data: mmap.mmap, begins: int, ends: int, after: int) -> int:
    """Return the start of a line near the first entry after `after`; numbers only grow here."""
    while ends - begins > NEAR:
        middle = (begins + ends) // 2
        found = _NUMBERED.search(data, middle, ends)
        if found is None or int(found[1]) > after:
            ends = middle
        else:
            begins = found.start() + 1
    return begins
