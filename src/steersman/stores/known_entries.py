"""What a process knows of a file of entries: how many there are, and their uuids.

Other processes append to the file as well. So each look reads on from where the last one ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeAlias

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from steersman.stores.entry_json import decode
from steersman.transcripts.blocks import OpenFile, lines_forward

Opened: TypeAlias = tuple[BinaryIO, int]
"""An open file, and how much of it is to be read."""

BLOCK = 1 << 20
END = 512
"""Bytes at both ends of a file by which it is known again."""


class _Named(Struct):
    """The one field of an entry that is needed here."""

    uuid: str | None = None


_read_named = Decoder(_Named).decode


class KnownEntries:
    """The uuids of one file."""

    def __init__(self, file: BinaryIO) -> None:
        self.uuids: set[str] = set()
        self.count = 0
        self.size = 0
        """Bytes that were read."""
        self.is_whole = True
        """Whether these end at the end of a line."""
        self._identity = _identity(file)
        self._ends = b"", b""

    def is_of(self, file: BinaryIO) -> bool:
        """Whether this is about `file`, which may have been replaced or cut off.

        The number of a file that was removed is given to the next one, so its ends are compared.
        """
        return self._identity == _identity(file) and self._ends == _ends(file, self.size)

    def read_on(self, file: BinaryIO, size: int) -> None:
        """Read what was appended since the last time, up to `size`."""
        if size == self.size:
            return
        begin = self.size if self.is_whole else 0
        if not self.is_whole:
            self.uuids.clear()
            self.count = 0
        for line in lines_until(file, size, begin):
            self.count += 1
            uuid = _uuid(line)
            if uuid:
                self.uuids.add(uuid)
        self._measure(file, size)

    def wrote(self, file: BinaryIO, uuids: Iterable[str | None]) -> None:
        """Add entries that this process has appended, after all was read that was there."""
        for uuid in uuids:
            self.count += 1
            if uuid is not None:
                self.uuids.add(uuid)
        self._measure(file, os.fstat(file.fileno()).st_size)

    def _measure(self, file: BinaryIO, size: int) -> None:
        self.size = size
        self._ends = _ends(file, size)
        self.is_whole = self._ends[1].endswith(b"\n")


def lines_until(file: BinaryIO, size: int, begin: int = 0) -> Iterator[bytes]:
    """Return the lines that are entries, from `begin` to `size`, without their newlines."""
    # A last line without a newline was cut off, unless only the newline is missing.
    for line in lines_forward(OpenFile(file, size), begin, block=BLOCK):
        if _is_entry(line.data):
            yield line.data


def _is_entry(line: bytes) -> bool:
    if not line.startswith(b"{") or not line.endswith(b"}"):
        return False
    try:
        _read_named(line)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            decode(line)
        except ValueError:
            return False
    return True


def _uuid(line: bytes) -> str | None:
    try:
        return _read_named(line).uuid
    except (MsgspecError, UnicodeDecodeError):
        found = decode(line).get("uuid")
        return found if isinstance(found, str) else None


def _ends(file: BinaryIO, size: int) -> tuple[bytes, bytes]:
    number, length = file.fileno(), min(size, END)
    return os.pread(number, length, 0), os.pread(number, length, size - length)


def _identity(file: BinaryIO) -> tuple[int, int]:
    about = os.fstat(file.fileno())
    return about.st_dev, about.st_ino
