"""Sessions as files: `<project>/<session>.jsonl`, and parts in `<project>/<session>/`.

The layout is that of the CLI's own `projects` folder, so that what reads one reads the other. The
blocking work is done in a thread of the store's own.

A batch is one write, under a lock; if it fails, the file is cut back to what it was, and if its
writer was killed, by the next process (`file_locks`). A line that was cut off otherwise is no
entry: the next append begins on a line of its own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias
from urllib.parse import quote, unquote

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from steersman import _json
from steersman._portal.home_thread import HomeThread
from steersman.errors import StoreError, UsageError
from steersman.stores.entry_json import (
    Place,
    check_timeout,
    chunks,
    decode,
    encode,
    fold,
    lines_of,
    new_lines,
    place_of,
    read_project,
    session_of,
)
from steersman.stores.file_locks import (
    ENTRIES,
    FileLocks,
    errors_translated,
    make_folders,
    open_below,
)
from steersman.transcripts.blocks import OpenFile, lines_forward
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    is_safe_subpath,
)

REST = 30.0
"""Seconds without work after which the thread ends."""


class DirectoryStore:
    """A `SessionStore` in a directory of this machine, which several processes may use at once.

    Directories are created with mode 0700 and files with 0600. `timeout` is how long to wait for
    another process that writes to the same session.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        check_timeout(timeout)
        self.path = Path(path)
        self._files = SessionFiles(self.path, timeout)
        self._thread = HomeThread("steersman-directory-store", _nothing, REST)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"DirectoryStore({str(self.path)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the thread of the store, after the work that is waiting. May be called again."""
        self._is_closed = True
        await self._thread.aclose()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await self._ready().do(self._files.append, place_of(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._ready().do(self._files.load, place_of(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return await self._ready().do(self._files.list_sessions, read_project(project_key))

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return await self._ready().do(self._files.list_summaries, read_project(project_key))

    async def delete(self, key: SessionKey) -> None:
        await self._ready().do(self._files.delete, place_of(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await self._ready().do(self._files.list_subkeys, session_of(key))

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        reading = await self._ready().do(self._files.open_stream, place_of(key))
        if reading is None:
            return
        try:
            while chunk := await self._ready().do(reading.next_chunk):
                yield chunk
        finally:
            reading.close()

    async def positions(self, key: SessionKey) -> int:
        return await self._ready().do(self._files.count, place_of(key))

    def _ready(self) -> HomeThread:
        if self._is_closed:
            raise StoreError(f"{self!r} is closed")
        return self._thread


async def _nothing() -> None:
    """Have nothing to close: files are open only while they are read or written."""


OWNER_ONLY = 0o600
SUMMARY = ".summary.json"
LONGEST_NAME = 200
MOST_KNOWN = 256
"""Keys whose uuids are kept in memory."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_NEW = os.O_RDWR | os.O_CREAT | os.O_APPEND


class SessionFiles:
    """Reads and writes the files below `root`."""

    def __init__(self, root: Path, timeout: float) -> None:
        self._root = root
        self._locks = FileLocks(root, timeout)
        self._known: OrderedDict[Path, KnownEntries] = OrderedDict()

    def append(self, place: Place, entries: list[SessionStoreEntry]) -> None:
        """Write the entries that the key does not have yet, all or none."""
        path, lines = self._path(place), lines_of(entries)
        if not lines:
            return
        with self._locks.to_write(place) as lock, errors_translated(path):
            make_folders(self._root, path.parent)
            number = open_below(self._root, path, _NEW)
            with os.fdopen(number, "r+b", buffering=0) as file:
                known = self._known_in(path, file, os.fstat(number).st_size)
                fresh = new_lines(lines, known.uuids)
                if not fresh:
                    return
                before = known.size
                data = b"".join(line.text + b"\n" for line in fresh)
                lock.write_note(path, before)
                _write_all(file, before, (b"" if known.is_whole else b"\n") + data)
                lock.clear_note()
                known.wrote(file, (line.uuid for line in fresh))
                if not place.subpath:
                    new = [line.entry for line in fresh]
                    self._write_summary(place, path, file, before, new)

    def load(self, place: Place) -> list[SessionStoreEntry] | None:
        """Return all entries of the key."""
        with self._opened(place) as opened:
            if opened is None:
                return None
            return [decode(line) for line in lines_until(*opened)] or None

    def open_stream(self, place: Place) -> ChunkReader | None:
        """Return a reader of the entries that the key has now, chunk by chunk."""
        path = self._path(place)
        with self._locks.to_read(place) as lock, errors_translated(path):
            try:
                number = open_below(self._root, path, os.O_RDONLY)
            except FileNotFoundError:
                return None
            size = lock.whole(path, os.fstat(number).st_size)
            return ChunkReader(path, os.fdopen(number, "rb"), size)

    def count(self, place: Place) -> int:
        """Return how many entries the key has."""
        path = self._path(place)
        with self._opened(place) as opened:
            return 0 if opened is None else self._known_in(path, *opened).count

    def list_sessions(self, project: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project that have entries."""
        return [
            {"session_id": session, "mtime": about.st_mtime_ns // 1_000_000}
            for session, about in self._sessions(project, ENTRIES)
            if about.st_size
        ]

    def list_summaries(self, project: str) -> list[SessionSummaryEntry]:
        """Return the summaries of a project's sessions."""
        rows: list[SessionSummaryEntry] = []
        for session, _ in self._sessions(project, SUMMARY):
            kept = _read_summary(self._root / _name(project) / (_name(session) + SUMMARY))
            if kept is not None:
                rows.append({"session_id": session, "mtime": kept["mtime"], "data": kept["data"]})
        return rows

    def delete(self, place: Place) -> None:
        """Remove the files of the key. The session's own file is the last, so none is forgotten."""
        path = self._path(place)
        with self._locks.to_write(place), errors_translated(path):
            if not place.subpath:
                with suppress(FileNotFoundError):
                    shutil.rmtree(path.with_suffix(""))
                path.with_suffix(SUMMARY).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            self._known.pop(path, None)

    def list_subkeys(self, place: Place) -> list[str]:
        """Return the subpaths of a session."""
        folder = self._path(place).with_suffix("")
        with errors_translated(folder):
            found = [
                path.relative_to(folder).with_suffix("")
                for path in folder.rglob(f"*{ENTRIES}")
                if path.is_file() and path.stat().st_size
            ]
        return sorted("/".join(map(_text, each.parts)) for each in found)

    def _sessions(self, project: str, suffix: str) -> Iterator[tuple[str, os.stat_result]]:
        folder = self._root / _name(project)
        with errors_translated(folder), suppress(FileNotFoundError), os.scandir(folder) as found:
            for each in found:
                if each.name.endswith(suffix):
                    # A session may be deleted while its project is listed.
                    with suppress(FileNotFoundError):
                        yield _text(each.name.removesuffix(suffix)), each.stat()

    def _path(self, place: Place) -> Path:
        folder = self._root / _name(place.project)
        if not place.subpath:
            return folder / (_name(place.session) + ENTRIES)
        if not is_safe_subpath(place.subpath):
            allowed = "a relative path such as 'subagents/agent-1', without '..', '\\' or controls"
            raise UsageError("key['subpath']", place.subpath, allowed)
        *parents, last = (_name(part) for part in place.subpath.split("/"))
        return Path(folder, _name(place.session), *parents, last + ENTRIES)

    def _known_in(self, path: Path, file: BinaryIO, size: int) -> KnownEntries:
        known = self._known.get(path)
        if known is None or not known.is_of(file):
            known = self._known[path] = KnownEntries(file)
        self._known.move_to_end(path)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        known.read_on(file, size)
        return known

    @contextmanager
    def _opened(self, place: Place) -> Generator[Opened | None]:
        """Open the file of a key, with the size that is whole; None if it is not there."""
        reader = self.open_stream(place)
        if reader is None:
            yield None
            return
        try:
            with errors_translated(reader.path):
                yield reader.file, reader.size
        finally:
            reader.close()

    def _write_summary(
        self, place: Place, path: Path, file: BinaryIO, before: int, new: list[SessionStoreEntry]
    ) -> None:
        about = os.fstat(file.fileno())
        target = path.with_suffix(SUMMARY)
        kept = _read_summary(target)
        previous: SessionSummaryEntry | None = None
        if kept is not None and kept["size"] == before:
            data = kept["data"]
            previous = {"session_id": place.session, "mtime": kept["mtime"], "data": data}
        elif before:
            # A crash came between the entries and their summary.
            new = [decode(line) for line in lines_until(file, about.st_size)]
        row = fold(previous, place, new, about.st_mtime_ns // 1_000_000)
        # A summary is made anew from the entries where it is missing, so it may fail.
        with suppress(OSError):
            _replace(target, encode({**row, "size": about.st_size}))


class ChunkReader:
    """A file that is read chunk by chunk, up to the size that it had at first."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self.path = path
        self.file = file
        self.size = size
        self._chunks = chunks(lines_until(file, size))

    def next_chunk(self) -> list[SessionStoreEntry] | None:
        """Return the next chunk; None at the end."""
        with errors_translated(self.path):
            return next(self._chunks, None)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _name(text: str) -> str:
    """Return a text as a file name that no other text has, and that is read back by `_text`."""
    name = text
    if not _PLAIN.fullmatch(text):
        # A dot ends the name, and begins what kind of file it is.
        raw = text.encode("utf-8", "surrogatepass")
        name = quote(raw, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(name) > LONGEST_NAME:
        raise UsageError("key", text, f"names that need at most {LONGEST_NAME} bytes as a file")
    return name


def _text(name: str) -> str:
    return unquote(name, "utf-8", "surrogatepass")


def _write_all(file: BinaryIO, before: int, data: bytes) -> None:
    """Write `data` at the end, or nothing."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except BaseException:
        with suppress(OSError):
            file.truncate(before)
        raise


def _read_summary(path: Path) -> _json.JsonDict | None:
    try:
        kept = _json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    is_ours = (
        _json.is_object(kept)
        and isinstance(kept.get("mtime"), int)
        and isinstance(kept.get("size"), int)
        and _json.is_object(kept.get("data"))
    )
    return kept if is_ours else None


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    number = os.open(
        beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY
    )
    with os.fdopen(number, "wb") as file:
        file.write(data)
    beside.replace(path)


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
