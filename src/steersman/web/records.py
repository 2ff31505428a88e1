"""Records of a journal: read from its file by number, without reading all of it; and as frames.

Records stay the bytes that they are. The file may be written meanwhile; a last line without its
newline is left until it is whole. Numbers only grow in a file: see `ports.SupportsLastSeq`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeAlias

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.journal.files import Header, Record, line_of, read_line
from steersman.transcripts.blocks import OpenFile, lines_backward

Numbered: TypeAlias = tuple[int, bytes]
"""The number of a record, and its line without the newline."""

CHUNK = 256 * 1024
NEAR = 64 * 1024
"""Bytes that are read line by line instead of searched."""
HEAD = 100
"""Bytes of a record in which its kind stands."""

HEADER = b'{"journal":'

_RECORD = re.compile(rb'\{"seq":(\d+)')
_NEXT = re.compile(rb'\n\{"seq":(\d+)')
_PARTIAL = re.compile(rb'\{"seq":\d+,"at":[^,]+,"kind":"partial"')
_AT = re.compile(rb'\{(?:"session":"[^"]*",)?"seq":\d+,"at":([^,]+),')


@dataclass(frozen=True, slots=True)
class Last:
    """The end of a journal."""

    seq: int = 0
    at: float = 0.0


def last_of(path: Path) -> Last:
    """Return number and time of the newest record; zeros if there is no file or none in it."""
    try:
        with path.open("rb") as file:
            for seq, line in _backwards(file, _size(file)):
                return Last(seq, at_of(line))
    except (OSError, ValueError):
        pass
    return Last()


def at_of(line: bytes) -> float:
    """Return the time of a record, or of its frame; 0.0 if it has none."""
    found = _AT.match(line)
    return float(found[1]) if found else 0.0


def records_after(path: Path, seq: int, most: int, most_bytes: int = CHUNK) -> list[Numbered]:
    """Return up to `most` records after number `seq`, and about `most_bytes`; at least one."""
    found: list[Numbered] = []
    size = 0
    try:
        with path.open("rb") as file:
            for record in _forwards(file, seq):
                found.append(record)
                size += len(record[1])
                if len(found) >= most or size >= most_bytes:
                    break
    except OSError:
        pass
    return found


def records_before(path: Path, seq: int | None, most: int) -> tuple[list[Numbered], bool]:
    """Return the last `most` records before number `seq`, without partial messages, oldest first.

    With `None` they are the newest. Also returns whether there are older ones.
    """
    try:
        with path.open("rb") as file:
            end = _size(file) if seq is None else _place_of(file, seq - 1)
            whole = (
                each
                for each in _backwards(file, end)
                if (seq is None or each[0] < seq) and not _PARTIAL.match(each[1])
            )
            found = list(islice(whole, most + 1))
    except OSError:
        found = []
    return found[most - 1 :: -1] if len(found) >= most else found[::-1], len(found) > most


def record_at(path: Path, seq: int) -> bytes | None:
    """Return the record with this number, or `None`."""
    found = records_after(path, seq - 1, 1)
    return found[0][1] if found and found[0][0] == seq else None


# Reading


def _forwards(file: BinaryIO, after: int) -> Iterator[Numbered]:
    file.seek(_near(file, after))
    before = 0
    for line in file:
        if not line.endswith(b"\n"):
            return
        number, record = _number_of(line), line
        if number is None:
            begun = _track_after(line)
            if begun is not None or not line.strip():
                before = max(before, begun or 0)
                continue
            number, record = before + 1, _torn(before + 1, line)
        before = number
        if number > after:
            yield number, record.rstrip(b"\n")


def _backwards(file: BinaryIO, end: int) -> Iterator[Numbered]:
    """Yield the records that end at or before the place `end`, the last one first."""
    torn: list[bytes] = []
    for _, line, is_ended in lines_backward(OpenFile(file, end)):
        if not is_ended:
            # A line that is being written.
            continue
        number = _number_of(line)
        before = _track_after(line) if number is None else number
        if before is None:
            torn += [line] if line.strip() else []
            continue
        # Torn lines are numbered from the record, or the beginning of the track, before them.
        for place, each in enumerate(torn):
            missing = before + len(torn) - place
            yield missing, _torn(missing, each).rstrip(b"\n")
        torn.clear()
        if number is not None:
            yield number, line


def _number_of(line: bytes) -> int | None:
    found = _RECORD.match(line)
    return int(found[1]) if found else None


def _track_after(line: bytes) -> int | None:
    """Return the number before a track, if `line` is the header of one."""
    found = read_line(line.rstrip(b"\n")) if line.startswith(HEADER) else None
    return found.after or 0 if isinstance(found, Header) else None


def _torn(number: int, line: bytes) -> bytes:
    """Return the record of a line that cannot be read, as `read_journal` names it."""
    return line_of(Record(number, 0.0, "noise", line.rstrip(b"\n"), details={"torn": True}))


# Looking for a number


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _place_of(file: BinaryIO, after: int) -> int:
    """Return where the first record after number `after` begins, or the end of the file."""
    place = _near(file, after)
    file.seek(place)
    for line in file:
        number = _number_of(line)
        if number is not None and number > after:
            return place
        place += len(line)
    return place


def _near(file: BinaryIO, after: int) -> int:
    """Return the start of a line, at or not far before the first record after `after`."""
    begins, ends = 0, _size(file)
    while after > 0 and ends - begins > NEAR:
        middle = (begins + ends) // 2
        found = _next_record(file, middle, ends)
        if found is None or found[1] > after:
            ends = middle
        else:
            begins = found[0]
    return begins


def _next_record(file: BinaryIO, place: int, end: int) -> tuple[int, int] | None:
    """Return place and number of the first record that begins after `place` and before `end`."""
    overlap = HEAD
    for begin, data in _chunks(file, place, end, overlap):
        found = _NEXT.search(data)
        if found:
            return begin + found.start() + 1, int(found[1])
    return None


def _chunks(
    file: BinaryIO, place: int, end: int, overlap: int
) -> Generator[tuple[int, bytes], None, None]:
    while place < end:
        file.seek(place)
        yield place, file.read(min(NEAR + overlap, end - place + overlap))
        place += NEAR


CUT = 20_000
"""Characters of a value that pages of old entries show."""


def prefix_of(session: str) -> bytes:
    """Return the beginning of every frame of a session."""
    return b'{"session":' + _json.dumps(session) + b","


def frame_of_line(prefix: bytes, line: bytes) -> bytes:
    """Return the frame of a line of a journal file."""
    return prefix + line[1:]


@dataclass(slots=True)
class _Cuts:
    """The values of one record that were cut, and where the search is."""

    found: list[JsonDict] = field(default_factory=list[JsonDict])
    path: list[str | int] = field(default_factory=list[str | int])

    @contextmanager
    def below(self, step: str | int) -> Generator[None, None, None]:
        self.path.append(step)
        try:
            yield
        finally:
            self.path.pop()

    def record(self, size: int) -> None:
        self.found.append({"path": [*self.path], "size": size})


def cut(frame: bytes, most: int = CUT) -> bytes:
    """Return `frame` with long strings cut, and listed in its `cut`. A short frame stays."""
    if len(frame) <= most:
        return frame
    try:
        record = _json.loads(frame)
        cuts = _Cuts()
        shorter = _cut_value(record, most, cuts)
        if cuts.found:
            shorter["cut"] = cuts.found
        small = _json.dumps(shorter)
    except (ValueError, RecursionError):
        return _without_content(frame, {})
    # Many short values: only their size is left.
    return small if len(small) <= _MUCH * most else _without_content(frame, record)


_MUCH = 10
_CONTENT = ("frame", "text", "base64", "details")


def _cut_value(value: Json, most: int, cuts: _Cuts) -> Json:
    if isinstance(value, str):
        if len(value) > most:
            cuts.record(len(value))
            return value[:most]
        return value
    if _json.is_object(value):
        return {name: _cut_below(name, each, most, cuts) for name, each in value.items()}
    if _json.is_array(value):
        return [_cut_below(place, each, most, cuts) for place, each in enumerate(value)]
    return value


def _cut_below(step: str | int, value: Json, most: int, cuts: _Cuts) -> Json:
    with cuts.below(step):
        return _cut_value(value, most, cuts)


def _without_content(frame: bytes, record: JsonDict) -> bytes:
    name = next((each for each in _CONTENT if each in record), "frame")
    kept = {key: value for key, value in record.items() if key not in _CONTENT}
    return _json.dumps({**kept, name: None, "cut": [{"path": [name], "size": len(frame)}]})
