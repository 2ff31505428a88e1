"""A journal in a file: a `Sink` that passes each entry to the operating system at once.

Only the owner can read the file; its format is that of `journal.files`. Each batch of entries is
one write, so a host program that is killed loses at most the batch that it was writing.
"""

from __future__ import annotations

import mmap
import os
import stat
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from steersman import _json
from steersman._json import JsonObject
from steersman.errors import UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import (
    FORMAT,
    TORN,
    Header,
    Record,
    is_plain,
    is_text,
    line_of,
    read_line,
)
from steersman.journal.redaction import MARK

if sys.platform != "win32":
    import fcntl

__all__ = ["JournalFile", "read_journal"]

Redact = Callable[[bytes], bytes]

OWNER_ONLY = 0o600
OTHERS = 0o077
LOOK_EVERY = 1.0
"""Seconds between two looks whether the file was removed: a look takes as long as a write."""

# In Python 3.11 looking up a member of an enum takes thirty times as long as a global name.
PARTIAL, RESTARTED = Kind.PARTIAL, Kind.RESTARTED
HEADER_BEGINS = b'{"journal":'


def _silent(_report: str) -> None:
    """Ignore a report."""


class JournalFile:
    """Appends the journal of one session at a time to the file at `path`.

    Each CLI process has a track of its own: a new track begins when the file is opened and after
    each restart of the CLI. If a write fails, as on a full disk, or if the file was removed, it is
    reported once and no more entries are written. A forked copy of the process writes none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Redact | None = None,
        report: Callable[[str], None] = _silent,
        header: Header | None = None,
    ) -> None:
        """Open the file, or create it.

        `redact` removes secrets from a line of JSON. `report` is called once, with the reason, when
        nothing can be written any more. Raises `UsageError` if the file cannot be opened, is locked
        by another session, or is not a journal.
        """
        self.path = Path(path)
        self.failure = ""
        """Why nothing is written any more; empty while writing works."""
        self._redact = redact
        self._report = report
        self._header = header or Header()
        self._unwritten = b""
        self._middle: tuple[tuple[float, Kind, tuple[str, ...]] | None, bytes] = (None, b"")
        self._next_look = 0.0
        """When to look whether the file was removed, in the entries' own time."""
        with _Opened.lock:
            self._file = _open(self.path)
            _Opened.files.add(self)
        try:
            self._size, track, is_torn = _examine(self.path, self._file)
            _narrow(self.path, self._file)
        except BaseException:
            os.close(self._file)
            self._file = -1
            raise
        # A line that a killed writer has cut off stays in the file, as one that cannot be read.
        self._begin_track(track, after=b"\n" if is_torn else b"")

    def write(self, entries: Sequence[Entry]) -> None:
        """Append `entries` with a single write; never raises."""
        if self._file < 0 or not entries:
            return
        lines: list[bytes] = []
        for entry in entries:
            if entry.kind is RESTARTED:
                self._begin_track(self._header.track + 1)
            if self._unwritten:
                lines.append(self._unwritten)
                self._unwritten = b""
            lines.append(self._line(entry))
        if entries[0].at >= self._next_look:
            self._next_look = entries[0].at + LOOK_EVERY
            self._check_removed()
            if self._file < 0:
                return
        self._append(b"".join(lines))

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._size:
            self._check_removed()
        number, self._file = self._file, -1
        if number >= 0:
            with suppress(OSError):
                _unlock(number)
                os.close(number)

    def _disown(self) -> None:
        """Close the file in a forked copy, whose descriptor would keep it locked."""
        number, self._file = self._file, -1
        if number >= 0:
            self.failure = f"the journal {self.path} is not written in a forked copy"
            with suppress(OSError):
                # Not unlocked: the lock is that of the original, which still writes.
                os.close(number)

    def _check_removed(self) -> None:
        """Give up if the file has no name any more: what is written would be lost."""
        with suppress(OSError):
            if self._file >= 0 and not os.fstat(self._file).st_nlink:
                self._give_up("the file was removed", b"")

    def _begin_track(self, track: int, after: bytes = b"") -> None:
        """Begin a track. The header is written with the first entry, so an unused one has none."""
        self._header = replace(self._header, track=track)
        self._unwritten += after + line_of(self._header)

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, memoryview(data)[written:])
        except OSError as error:
            self._give_up(error.strerror or str(error), data[:written])
        else:
            self._size += len(data)

    def _give_up(self, why: str, written: bytes) -> None:
        with suppress(OSError):
            # Remove a line that was written in part; the complete lines before it stay.
            os.ftruncate(self._file, self._size + written.rfind(b"\n") + 1)
        number, self._file = self._file, -1
        with suppress(OSError):
            os.close(number)
        self.failure = f"the journal {self.path} is no longer written: {why}"
        with suppress(Exception):
            # A failure of the caller's function must not end the session.
            self._report(self.failure)

    def _line(self, entry: Entry) -> bytes:
        line = entry.line
        is_usual = entry.decoded is not None or entry.kind is PARTIAL
        try:
            if is_usual and not entry.details and self._is_as_it_came(line):
                return b'{"seq":%d%b%b}\n' % (entry.seq, self._middle_of(entry), line)
            return line_of(self._redacted(Record.of(entry)))
        except Exception as error:  # noqa: BLE001 - from the caller's details or redact; a sink never raises
            # An entry that cannot be redacted or encoded is not written in part.
            unwritable = {"unwritable": type(error).__name__}
            shown = MARK.encode() if line else b""
            return line_of(
                Record(entry.seq, entry.at, entry.kind.value, shown, entry.turns, unwritable)
            )

    def _is_as_it_came(self, line: bytes) -> bool:
        """Whether `line` may be embedded in a record unchanged."""
        is_clean = self._redact is None or self._redact(line) is line
        return is_clean and is_text(line) and is_plain(line)

    def _middle_of(self, entry: Entry) -> bytes:
        """Return the bytes between number and line, which are equal for entries of one batch."""
        key = (entry.at, entry.kind, entry.turns)
        if key != self._middle[0]:
            head = line_of(Record(0, entry.at, entry.kind.value, b"", entry.turns))
            self._middle = key, head.removeprefix(b'{"seq":0').removesuffix(b"}\n") + b',"frame":'
        return self._middle[1]

    def _redacted(self, record: Record) -> Record:
        if self._redact is None:
            return record
        line, details = self._redact(record.line), record.details
        if details:
            known: JsonObject = _json.loads(self._redact(_json.dumps(details)))
            return replace(record, line=line, details=known)
        return record if line is record.line else replace(record, line=line)


class _Opened:
    """The files that this process writes. The lock keeps forks out while one is being opened."""

    lock = threading.RLock()
    files: weakref.WeakSet[JournalFile] = weakref.WeakSet()


def _disown_all() -> None:
    _Opened.lock = threading.RLock()
    for each in list(_Opened.files):
        each._disown()  # pyright: ignore[reportPrivateUsage] - of this file
    _Opened.files.clear()


if sys.platform != "win32":
    os.register_at_fork(
        before=lambda: _Opened.lock.acquire(),  # noqa: PLW0108 - the lock may have been replaced
        after_in_parent=lambda: _Opened.lock.release(),  # noqa: PLW0108
        after_in_child=_disown_all,
    )


def read_journal(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """Yield the entries of a journal file, for example for `replay`.

    A line that cannot be read, such as the last one of a killed host program, is an entry of kind
    `NOISE` with `details["torn"]`. Raises `UsageError` if the file is not a journal.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed by the generator that reads the rest
    except OSError as error:
        raise UsageError("path", str(path), f"a file that can be read ({error.strerror})") from None
    header = read_line(file.readline())
    if not isinstance(header, Header) or header.format > FORMAT:
        file.close()
        raise UsageError("path", str(path), f"a journal of format {FORMAT}")
    return _entries_in(file)


def _entries_in(file: BinaryIO) -> Iterator[Entry]:
    seq = 0
    with file:
        for line in file:
            found = read_line(line.rstrip(b"\n")) if line.strip() else None
            if not isinstance(found, Record):
                continue
            if found.kind == TORN:
                yield Entry(seq + 1, 0.0, Kind.NOISE, found.line, details={"torn": True})
            elif (entry := found.entry) is not None:
                seq = entry.seq
                yield entry


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOCTTY", 0)
    try:
        number = os.open(path, flags, OWNER_ONLY)
    except OSError as error:
        allowed = f"a file that can be written ({error.strerror})"
        raise UsageError("journal", str(path), allowed) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise UsageError("journal", str(path), "a regular file")
    if sys.platform != "win32":
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            hint = "give each session its own file, or close the other session first"
            raise UsageError("journal", str(path), "a file that is not in use", hint=hint) from None
    return number


def _unlock(number: int) -> None:
    """Release the lock, which a copy of the descriptor in another process would keep."""
    if sys.platform != "win32":
        fcntl.flock(number, fcntl.LOCK_UN)


def _narrow(path: Path, number: int) -> None:
    """Let only the owner read an existing journal. Raises `UsageError` if that cannot be done."""
    if sys.platform == "win32" or not os.fstat(number).st_mode & OTHERS:
        return
    hint = f"chmod 600 {path}, or choose another file"
    if path.is_symlink():
        # The link may have been made by another user, so the mode of its target is not changed.
        raise UsageError("journal", str(path), "a file that only you can read", hint=hint)
    try:
        os.fchmod(number, OWNER_ONLY)
    except OSError as error:
        allowed = f"a file that only you can read ({error.strerror})"
        raise UsageError("journal", str(path), allowed, hint=hint) from None


def _examine(path: Path, number: int) -> tuple[int, int, bool]:
    """Return the size of the file, the number of its next track, and whether its end is cut off."""
    size = os.fstat(number).st_size
    if not size:
        return 0, 0, False
    with mmap.mmap(number, size, access=mmap.ACCESS_READ) as data:
        if data[: len(HEADER_BEGINS)] != HEADER_BEGINS:
            raise UsageError("journal", str(path), "a new file, or one with a journal")
        begins = data.rfind(b"\n" + HEADER_BEGINS) + 1
        ends = data.find(b"\n", begins)
        header = read_line(data[begins : size if ends < 0 else ends])
        is_torn = data[-1:] != b"\n"
    if isinstance(header, Header) and header.format > FORMAT:
        hint = "a later release of steersman wrote it; update steersman"
        raise UsageError("journal", str(path), f"a journal of format {FORMAT}", hint=hint)
    # The line that is cut off may be the header itself.
    return size, header.track + 1 if isinstance(header, Header) else 1, is_torn
