"""A journal in a file: a `Sink` that passes each entry to the operating system at once.

Only the owner can read the file; its format is that of `journal.files`. Each batch of entries is
one write, so a host program that is killed loses at most the batch that it was writing.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from steersman.errors import UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import Header, line_of
from steersman.journal.json_form import EntryEncoder
from steersman.stores.journal_reader import Identity, StoredEntries, examine, identity_of

if sys.platform != "win32":
    import fcntl

Redact = Callable[[bytes], bytes]

OWNER_ONLY = 0o600
OTHERS = 0o077
LOOK_EVERY = 1.0
"""Seconds between two looks whether the file was removed: a look takes as long as a write."""

# In Python 3.11 looking up a member of an enum takes thirty times as long as a global name.
RESTARTED = Kind.RESTARTED


def _silent(_report: str) -> None:
    """Ignore a report."""


class JournalFile:
    """Appends the journal of one session at a time to the file at `path`.

    Each CLI process has a track of its own: a new track begins when the file is opened and after
    each restart of the CLI. If a write fails, as on a full disk, or if the file was removed, it is
    reported once and no more entries are written. A forked copy of the process writes none.

    Numbers continue from those of the file, and of entries that this process could not write to it,
    which readers may have seen. Sessions that write to one `JournalFile` at the same time use
    numbers twice, and then no entry can be read back.
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
        self._encode = EntryEncoder(redact).encode
        self._report = report
        self._header = header or Header()
        self._next_look = 0.0
        """When to look whether the file was removed, in the entries' own time."""
        with _Opened.lock:
            self._file = _open(self.path)
            _Opened.files.add(self)
        try:
            found = examine(self.path, self._file)
            self._identity = identity_of(self._file)
            # Of a file that was removed, another one may get the identity.
            self._name = self._identity, str(self.path.absolute())
            _narrow(self.path, self._file)
        except BaseException:
            os.close(self._file)
            self._file = -1
            raise
        self.last_seq = max(found.last_seq, _Opened.unwritten.get(self._name, 0))
        """The greatest number in the file, or of an entry that could not be written; 0 if none."""
        self._size = found.size
        self._track: int | None = found.track
        """The number of the track that the next entry begins; `None` in the middle of one."""
        # A line that a killed writer has cut off stays in the file, as one that cannot be read.
        self._unwritten = b"\n" if found.is_torn else b""
        self._is_mixed = False
        """Whether numbers were used twice, by sessions that write at the same time."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Append `entries` with a single write; never raises."""
        if not entries:
            return
        if self._file < 0:
            self._skip(entries[-1].seq)
            return
        lines, encode = list[bytes](), self._encode
        if entries[0].seq <= self.last_seq and not self._is_mixed:
            self._is_mixed, self._track = True, self._next_track
        for entry in entries:
            if entry.kind is RESTARTED:
                self._track = self._next_track
            if self._track is not None:
                lines.append(self._begin_track(self._track, entry.seq - 1))
            lines.append(encode(entry))
        self.last_seq = max(self.last_seq, entries[-1].seq)
        if entries[0].at >= self._next_look:
            self._next_look = entries[0].at + LOOK_EVERY
            self._check_removed()
            if self._file < 0:
                self._skip(self.last_seq)
                return
        self._append(b"".join(lines))

    def read(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        """Return the entries of the file after number `after`, in batches; also after `close`.

        They have no known secrets. If numbers were used twice, or if another file is at the path
        now, there are none.
        """
        path = Path(os.devnull) if self._is_mixed else self.path
        return StoredEntries(path, self._identity, after)

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

    def _skip(self, seq: int) -> None:
        """Let the next session on this file count on after an entry that is not in it."""
        if self.failure:
            self.last_seq = max(self.last_seq, seq)
            _Opened.unwritten[self._name] = self.last_seq

    @property
    def _next_track(self) -> int:
        return self._header.track + 1 if self._track is None else self._track

    def _begin_track(self, track: int, after: int) -> bytes:
        """Return the header of a track, which is written with its first entry."""
        before, self._unwritten, self._track = self._unwritten, b"", None
        goes_on = None if self._is_mixed else after
        self._header = replace(self._header, track=track, after=goes_on)
        return before + line_of(self._header)

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
        self._skip(self.last_seq)
        with suppress(Exception):
            # A failure of the caller's function must not end the session.
            self._report(self.failure)


class _Opened:
    """The files that this process writes. The lock keeps forks out while one is being opened."""

    lock = threading.RLock()
    files: weakref.WeakSet[JournalFile] = weakref.WeakSet()
    unwritten: ClassVar[dict[tuple[Identity, str], int]] = {}
    """The last numbers of entries that could not be written, by file and path: given only once."""


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
