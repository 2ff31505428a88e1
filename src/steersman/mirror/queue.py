"""The entries that the CLI has reported and the store does not have yet. Pure."""

from __future__ import annotations

import re
from collections import deque

import msgspec
from msgspec import Raw, Struct

from steersman import _json
from steersman._struct import DECODE_ERRORS
from steersman.transcripts.keys import SessionKey, is_safe_subpath, is_session_id

MOST_ENTRIES = 500
MOST_BYTES = 1024 * 1024
"""How much is appended to a store at once; one entry may be longer."""

APPENDING = 60.0
"""Seconds after which an append has failed, and is not repeated."""

FILE_END = ".jsonl"
_IN_PROJECTS = re.compile(r".*/projects/([^/]+)/([^/]+?)(?:/(.+))?\.jsonl", re.DOTALL)


class _Frame(Struct, frozen=True):
    entries: list[Raw]
    path: str = msgspec.field(name="filePath")


_read_frame = msgspec.json.Decoder(_Frame).decode


class MirrorQueue:
    """Entries by file, in the order in which the CLI wrote them."""

    def __init__(self) -> None:
        self.bytes = 0
        self.entries = 0
        self._waiting: deque[tuple[str, Raw]] = deque()

    def add(self, line: bytes) -> str | None:
        """Add the entries of a `transcript_mirror` line; returns their file.

        Returns None if the line cannot be read.
        """
        try:
            frame = _read_frame(line)
        except DECODE_ERRORS:
            return self._add_slowly(line)
        self._put(frame.path, frame.entries)
        return frame.path

    def _add_slowly(self, line: bytes) -> str | None:
        """Add a line that msgspec does not read, such as one with half of a surrogate pair."""
        try:
            frame = _json.loads(line)
        except ValueError:
            return None
        path = frame.get("filePath") if _json.is_object(frame) else None
        entries = frame.get("entries") if _json.is_object(frame) else None
        if not isinstance(path, str) or not _json.is_array(entries):
            return None
        self._put(path, [Raw(_json.dumps(entry)) for entry in entries])
        return path

    def _put(self, path: str, entries: list[Raw]) -> None:
        self.entries += len(entries)
        for entry in entries:
            self.bytes += _size(entry)
            self._waiting.append((path, entry))

    def take(self) -> dict[str, list[Raw]]:
        """Remove the next batch, and return it by file."""
        batch: dict[str, list[Raw]] = {}
        entries = size = 0
        while self._waiting and entries < MOST_ENTRIES:
            path, entry = self._waiting[0]
            if entries and size + _size(entry) > MOST_BYTES:
                break
            self._waiting.popleft()
            batch.setdefault(path, []).append(entry)
            entries += 1
            size += _size(entry)
        self.entries -= entries
        self.bytes -= size
        return batch

    def drop(self) -> dict[str, list[Raw]]:
        """Remove everything, and return it by file."""
        dropped: dict[str, list[Raw]] = {}
        for path, entry in self._waiting:
            dropped.setdefault(path, []).append(entry)
        self._waiting.clear()
        self.bytes = self.entries = 0
        return dropped


def _size(entry: Raw) -> int:
    return memoryview(entry).nbytes


class MirrorKeys:
    """Session files → keys of a store."""

    def __init__(self) -> None:
        self._opened: dict[str, SessionKey] = {}

    def open(self, path: str, key: SessionKey) -> None:
        """Note that the conversation `key` was resumed from the file at `path`."""
        self._opened[path.removesuffix(FILE_END)] = key

    def find(self, path: str) -> SessionKey | None:
        """Return the key of a file; None if it is no session file."""
        if not path.endswith(FILE_END):
            return None
        stem = path.removesuffix(FILE_END)
        for opened, key in self._opened.items():
            if stem == opened:
                return key
            if stem.startswith(opened + "/"):
                return _key_of(key["project_key"], key["session_id"], stem[len(opened) + 1 :])
        found = _IN_PROJECTS.fullmatch(path)
        if found is None or not is_session_id(found[2]):
            return None
        return _key_of(found[1], found[2], found[3])


def _key_of(project: str, session_id: str, subpath: str | None) -> SessionKey | None:
    if subpath is None:
        return {"project_key": project, "session_id": session_id}
    if not is_safe_subpath(subpath):
        return None
    return {"project_key": project, "session_id": session_id, "subpath": subpath}
