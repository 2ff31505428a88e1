"""Finds places and numbers in a journal file, without reading all of it where possible.

The format is that of `journal.files`. A number is found by a search in halves, if numbers continue
over all tracks; in files of earlier releases they do not, and then every line is read.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from steersman.errors import UsageError
from steersman.journal.files import FORMAT, TORN, Header, read_line

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
    """Return what is in the open file `number`. Raises `UsageError` if it is not a journal."""
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
