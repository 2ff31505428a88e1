"""Reads the files of the CLI: at any offset, line by line, and only what a list shows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from io import BytesIO
from types import TracebackType
from typing import NamedTuple, Self

from steersman._json import JsonDict
from steersman.transcripts.blocks import lines_forward
from steersman.transcripts.entries import TranscriptEntry, read_entry
from steersman.transcripts.summary import Summary

BLOCK = 4 << 20
"""Bytes that a list reads of a file at once."""
MARK = 64
"""Bytes before an offset by which a file is recognized that has only grown."""


class FileSource:
    """A session file that is open for reading; never waits for a file that is a pipe."""

    def __init__(self, path: str) -> None:
        """Open the file. Raises `OSError`."""
        self._number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        about = os.fstat(self._number)
        if not stat.S_ISREG(about.st_mode):
            os.close(self._number)
            raise OSError(f"{path} is not a plain file")
        self.size = about.st_size
        """The size of the file when it was opened."""
        self.number = about.st_ino
        """The number of the file in its file system."""

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; none if the file has become shorter."""
        data = os.pread(self._number, size, offset)
        if len(data) == size or not data:
            return data
        # A single read returns at most 2 GiB, and may be interrupted.
        parts = [data]
        while missing := size - sum(map(len, parts)):
            more = os.pread(self._number, missing, offset + size - missing)
            if not more:
                break
            parts.append(more)
        return b"".join(parts)

    def read_once(self, offset: int, size: int) -> bytes:
        """Return some of the bytes from `offset`: as many as one call of the system gives."""
        return os.pread(self._number, size, offset)

    def close(self) -> None:
        """Close the file."""
        os.close(self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def entries_of(source: FileSource) -> Iterator[TranscriptEntry]:
    """Yield the entries of a file, without empty lines. Closes the file at the end."""
    with source:
        for line in lines_forward(source):
            if line.data.strip():
                yield read_entry(line.data, is_last=not line.is_ended)


class Folded(NamedTuple):
    """What a list shows of a file, up to an offset."""

    offset: int
    """Where the first line begins that was not complete."""
    mark: bytes
    """The bytes before the offset."""
    data: JsonDict
    """The data of a `Summary`."""


NOTHING = Folded(0, b"", {})


def fold_small(path: str, size: int) -> JsonDict | None:
    """Return what a list shows of a file that had `size` bytes; None if it is another now.

    As `fold_file`, with fewer steps. Raises `OSError`.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = os.pread(number, size + 1, 0)
    finally:
        os.close(number)
    return _fold_lines({}, _lines(data)) if len(data) == size else None


def _lines(data: bytes) -> list[bytes]:
    """Return the lines of `data`, each with its newline; in a third of the time of `split`."""
    return BytesIO(data).readlines()


def fold_file(path: str, before: Folded = NOTHING) -> Folded:
    """Return what a list shows of a file, reading only what came after `before`.

    Reads the whole file if it does not begin as it did. Raises `OSError`.
    """
    with FileSource(path) as source:
        if before.offset and not _has_grown(source, before):
            before = NOTHING
        offset, mark, data = before
        at, carry = offset, b""
        while block := source.read_once(at, wanted := max(1, min(BLOCK, source.size - at + 1))):
            at += len(block)
            lines = _lines(carry + block if carry else block)
            carry = b"" if lines[-1].endswith(b"\n") else lines.pop()
            if lines:
                data = _fold_lines(data, lines)
                offset = at - len(carry)
                mark = lines[-1][-MARK:]
            if len(block) < wanted and at >= source.size:
                break
        if carry:
            # Not counted as read: the line may be continued.
            data = _fold_lines(data, [carry])
        return Folded(offset, mark, data)


def _has_grown(source: FileSource, before: Folded) -> bool:
    size = len(before.mark)
    return source.size >= before.offset and source.read(before.offset - size, size) == before.mark


FIRST: Sequence[tuple[str, bytes]] = (
    ("is_sidechain", b'"uuid"'),
    ("is_sidechain", b'"isSidechain":true'),
    ("cwd", b'"cwd"'),
    ("created_at", b'"timestamp"'),
    ("first_prompt_locked", b'"user"'),
)
"""Keys of a summary's data whose first value is kept, and what a line with one contains."""

FEW = 3
"""Lines at the beginning of a file that are folded without a look: they have the first values."""

LAST_BRANCH = b'"gitBranch"'
LAST_PROMPT = b'{"type":"last-prompt"'

MESSAGE = b'{"parentUuid":'
NO_TITLES = (
    MESSAGE,
    b'{"type":"api-request',
    b'{"type":"atis-latch"',
    b'{"type":"cost-state"',
    b'{"type":"file-history-',
    b'{"type":"mode"',
    b'{"type":"queue-operation"',
    b'{"type":"tools-used"',
)
"""How lines begin that have neither title nor tag: messages, and the most frequent others."""


def _fold_lines(data: JsonDict, lines: Sequence[bytes]) -> JsonDict:
    """Return the data of a summary after `lines`, decoding only those that can change it."""
    summary = Summary.from_data(data)
    begin = _fold_head(summary, lines)
    size = len(MESSAGE)
    # A slice is quicker than `startswith`, and most lines are messages.
    others = [line for line in lines[begin:] if line[:size] != MESSAGE]
    prompt = b""
    for line in others:
        if line.startswith(LAST_PROMPT):
            prompt = line
        elif not line.startswith(NO_TITLES):
            summary.fold(read_entry(line))
    if prompt:
        summary.fold(read_entry(prompt))
    for line in reversed(lines):
        if LAST_BRANCH in line:
            if _is_branch(line, summary):
                break
            entry = read_entry(line)
            if entry.git_branch:
                summary.fold(entry)
                break
    return summary.to_data()


def _is_branch(line: bytes, summary: Summary) -> bool:
    """Whether a line names the branch that is known already, as nearly always."""
    branch = str(summary.to_data().get("git_branch", "")).encode("utf-8", "replace")
    return bool(branch) and b'"gitBranch":"%b"' % branch in line


def _fold_head(summary: Summary, lines: Sequence[bytes]) -> int:
    """Fold lines until every first value is known; return how many lines that took."""
    known = summary.to_data()
    missing = [each for each in FIRST if each[0] not in known]
    for number, line in enumerate(lines):
        if not missing:
            return number
        if number < FEW or _has_any(line, missing) or not line.startswith(NO_TITLES):
            summary.fold(read_entry(line))
            known = summary.to_data()
            missing = [each for each in missing if each[0] not in known]
    return len(lines)


def _has_any(line: bytes, missing: Sequence[tuple[str, bytes]]) -> bool:
    for _, needle in missing:  # noqa: SIM110 - a generator takes twice as long
        if needle in line:
            return True
    return False
