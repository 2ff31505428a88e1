"""A journal in a file: every entry is on its way to the disk before the session goes on.

A `Sink`. The file is readable by its owner only; its format is that of `journal.files`. Each batch
of entries is one write, so a host that is killed loses what it was just writing and nothing else.
"""

from __future__ import annotations

import mmap
import os
import sys
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

# Python 3.11 looks an enum's members up at thirty times the price of a name.
PARTIAL, RESTARTED = Kind.PARTIAL, Kind.RESTARTED
HEADER_BEGINS = b'{"journal":'


def _silent(_report: str) -> None:
    """What is done about a report that nobody wants."""


class JournalFile:
    """Writes the journal of one session at a time to `path`, behind what stands there already.

    Each life of a CLI is a track of its own: a new one begins with the file, when it is opened
    again, and after each revival. When the disk is full, or gone, it reports so once and stops.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Redact | None = None,
        report: Callable[[str], None] = _silent,
        header: Header | None = None,
    ) -> None:
        """Open the file, or make it.

        `redact` takes out of a line of JSON what must not be written down. `report` hears, once,
        why nothing is written any more. Raises `UsageError` where no journal can be written.
        """
        self.path = Path(path)
        self.failure = ""
        """Why it writes nothing any more; empty as long as it does."""
        self._redact = redact
        self._report = report
        self._header = header or Header()
        self._unwritten = b""
        self._middle: tuple[tuple[float, Kind, tuple[str, ...]] | None, bytes] = (None, b"")
        self._file = _open(self.path)
        try:
            self._size, track, is_torn = _examine(self.path, self._file)
        except BaseException:
            os.close(self._file)
            raise
        # What a killed writer left half written stays, as a line that cannot be read.
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
        self._append(b"".join(lines))

    def close(self) -> None:
        """Let go of the file."""
        number, self._file = self._file, -1
        if number >= 0:
            with suppress(OSError):
                os.close(number)

    def _begin_track(self, track: int, after: bytes = b"") -> None:
        """The header goes out with the first entry: a session that never began leaves none."""
        self._header = replace(self._header, track=track)
        self._unwritten += after + line_of(self._header)

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, memoryview(data)[written:])
        except OSError as error:
            self._give_up(error, data[:written])
        else:
            self._size += len(data)

    def _give_up(self, error: OSError, written: bytes) -> None:
        with suppress(OSError):
            # Half a line would be there for ever; the whole ones before it are good.
            os.ftruncate(self._file, self._size + written.rfind(b"\n") + 1)
        self.close()
        self.failure = f"the journal {self.path} is no longer written: {error.strerror or error}"
        with suppress(Exception):
            # It is the caller's own code, and must not hurt the session.
            self._report(self.failure)

    def _line(self, entry: Entry) -> bytes:
        line = entry.line
        is_usual = entry.decoded is not None or entry.kind is PARTIAL
        try:
            if is_usual and not entry.details and self._is_as_it_came(line):
                return b'{"seq":%d%b%b}\n' % (entry.seq, self._middle_of(entry), line)
            return line_of(self._redacted(Record.of(entry)))
        except Exception as error:  # noqa: BLE001 - details or a rule of the caller's; must not hurt
            # What cannot be redacted, or told, is not told in part.
            unwritable = {"unwritable": type(error).__name__}
            shown = MARK.encode() if line else b""
            return line_of(
                Record(entry.seq, entry.at, entry.kind.value, shown, entry.turns, unwritable)
            )

    def _is_as_it_came(self, line: bytes) -> bool:
        """Whether `line` may stand in a record as it is."""
        is_clean = self._redact is None or self._redact(line) is line
        return is_clean and is_text(line) and is_plain(line)

    def _middle_of(self, entry: Entry) -> bytes:
        """What stands between the number and the line: the same for all that came together."""
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


def read_journal(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """The entries of a file, one by one, for `replay` or for whoever looks.

    A line that cannot be read, such as the last one of a host that was killed, is an entry of kind
    `NOISE` with `details["torn"]`. Raises `UsageError` where there is no journal.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed by the generator that reads on
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
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        number = os.open(path, flags, OWNER_ONLY)
    except OSError as error:
        allowed = f"a file that can be written ({error.strerror})"
        raise UsageError("journal", str(path), allowed) from None
    if sys.platform != "win32":
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            hint = "give each session a file of its own, or close the other one first"
            raise UsageError("journal", str(path), "a file no one writes", hint=hint) from None
    return number


def _examine(path: Path, number: int) -> tuple[int, int, bool]:
    """The size of the file, the number of its next track, and whether its last line is cut off."""
    size = os.fstat(number).st_size
    if not size:
        # It may be older than this session, and open to others.
        path.chmod(OWNER_ONLY)
        return 0, 0, False
    with mmap.mmap(number, size, access=mmap.ACCESS_READ) as data:
        if data[: len(HEADER_BEGINS)] != HEADER_BEGINS:
            raise UsageError("journal", str(path), "a new file, or one with a journal")
        begins = data.rfind(b"\n" + HEADER_BEGINS) + 1
        ends = data.find(b"\n", begins)
        header = read_line(data[begins : size if ends < 0 else ends])
        is_torn = data[-1:] != b"\n"
    if isinstance(header, Header) and header.format > FORMAT:
        hint = "a later steersman wrote it; update this one"
        raise UsageError("journal", str(path), f"a journal of format {FORMAT}", hint=hint)
    # The header itself may be what is cut off.
    return size, header.track + 1 if isinstance(header, Header) else 1, is_torn
