"""Locks of the sessions in a directory, and what a writer that was killed has left.

A lock file has a note of the batch that is being written. The kernel releases the lock of a process
that ends; the next writer finds the note and cuts the file back, and a reader, which writes
nothing, reads only what was there before. Lock files are never removed, 64 for all sessions, so
that no lock is on a file that was deleted. No link below the root is followed, and a note cuts only
files of sessions with its lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from steersman import _json
from steersman.errors import StoreError
from steersman.stores.entry_json import Place, encode

OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
LOCKS = ".locks"
LOCK_COUNT = 64
LONGEST_NOTE = 1 << 16
BEGIN = b'{"path":'
ENTRIES = ".jsonl"


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ANY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class _Note:
    """The file that a writer has begun to write, below the root, and its size before."""

    path: Path
    size: int


class Held:
    """The lock of a session, while it is held."""

    def __init__(self, root: Path, number: int, note: _Note | None) -> None:
        self._root = root
        self._number = number
        self._note = note

    def whole(self, path: Path, size: int) -> int:
        """Return how much of a file of `size` bytes is whole: all but what a killed writer left."""
        note = self._note
        return size if note is None or path != self._root / note.path else min(size, note.size)

    def write_note(self, path: Path, size: int) -> None:
        """Write down, in the lock file, which file is being written, and its size before."""
        relative = path.relative_to(self._root)
        os.pwrite(self._number, encode({"path": str(relative), "size": size}), 0)

    def clear_note(self) -> None:
        """Remove the note: what it was about is written whole."""
        os.ftruncate(self._number, 0)


class FileLocks:
    """The locks of the sessions below `root`."""

    def __init__(self, root: Path, timeout: float) -> None:
        self._root = root
        self._timeout = timeout

    @contextmanager
    def to_write(self, place: Place) -> Generator[Held]:
        """Hold the lock of a session alone, after undoing what a killed writer has left."""
        path = self._path(place)
        with errors_translated(path):
            make_folders(self._root, path.parent)
            number = open_below(self._root, path, os.O_RDWR | os.O_CREAT)
        try:
            _wait_for(number, fcntl.LOCK_EX, self._timeout, place)
            with errors_translated(path):
                held = Held(self._root, number, None)
                note = _read_note(number, path)
                if note is not None:
                    _cut(self._root, note)
                if os.fstat(number).st_size:
                    held.clear_note()
            yield held
        finally:
            os.close(number)

    @contextmanager
    def to_read(self, place: Place) -> Generator[Held]:
        """Hold the lock of a session together with other readers; writes nothing."""
        path = self._path(place)
        try:
            with errors_translated(path):
                number = open_below(self._root, path, os.O_RDONLY)
        except StoreError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            # A session that was never written needs no lock.
            yield Held(self._root, -1, None)
            return
        try:
            _wait_for(number, fcntl.LOCK_SH, self._timeout, place)
            with errors_translated(path):
                note = _read_note(number, path)
            yield Held(self._root, number, note)
        finally:
            os.close(number)

    def _path(self, place: Place) -> Path:
        return self._root / LOCKS / _lock_name(place.project, place.session)


def _lock_name(project: str, session: str) -> str:
    return f"{zlib.crc32(encode([project, session])) % LOCK_COUNT:02d}"


def _read_note(number: int, lock: Path) -> _Note | None:
    """Return the note in a lock file. Raises `StoreError` for anything else in it."""
    text = os.pread(number, LONGEST_NOTE + 1, 0)
    try:
        note = _json.loads(text)
        found = _Note(Path(note["path"]), int(note["size"]))
    except (ValueError, TypeError, KeyError):
        if len(text) <= LONGEST_NOTE and (text.startswith(BEGIN) or BEGIN.startswith(text)):
            # The writer was killed while it wrote the note, before it wrote anything else.
            return None
    else:
        if found.size >= 0 and _is_of_lock(note["path"], lock.name):
            return found
    raise StoreError(
        f"{lock} has no note of a session that it locks: nothing was changed",
        hint="something else has written to the directory of the store: look, and remove the file",
    )


def _is_of_lock(path: str, lock: str) -> bool:
    """Whether a path is that of a file of entries, of a session that has this lock."""
    parts = [*PurePosixPath(path).parts]
    is_plain = not path.startswith("/") and ".." not in parts and len(parts) > 1
    if not (is_plain and path == "/".join(parts) and path.endswith(ENTRIES)):
        return False
    session = parts[1].removesuffix(ENTRIES) if len(parts) == 2 else parts[1]  # noqa: PLR2004
    project, session = (unquote(each, "utf-8", "surrogatepass") for each in (parts[0], session))
    return _lock_name(project, session) == lock


def _cut(root: Path, note: _Note) -> None:
    """Cut a file back whose writer was killed."""
    try:
        number = open_below(root, root / note.path, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        if os.fstat(number).st_size > note.size:
            os.ftruncate(number, note.size)
    finally:
        os.close(number)


def open_below(root: Path, path: Path, flags: int) -> int:
    """Open a file below `root`, made for the owner alone; a link on the way is an error."""
    *parents, name = path.relative_to(root).parts
    folder = os.open(root, _FOLDER)
    try:
        for each in parents:
            inner = os.open(each, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        number = os.open(name, flags | _ANY, OWNER_ONLY, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "is not a plain file")
    return number


def _wait_for(number: int, how: int, timeout: float, place: Place) -> None:
    until, pause = time.monotonic() + timeout, 0.001
    while True:
        try:
            fcntl.flock(number, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise StoreError(
                    f"the session {place.session} was locked by another writer for {timeout:g} s",
                    hint="find the process that holds the lock, or raise timeout=",
                ) from None
        else:
            return
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def make_folders(root: Path, folder: Path) -> None:
    """Create the folders from `root` down to `folder`, for the owner alone."""
    if not root.exists():
        root.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
    missing = folder
    wanted: list[Path] = []
    while missing != root and not missing.exists():
        wanted.append(missing)
        missing = missing.parent
    if any(each.is_symlink() for each in (folder, *folder.parents) if root in each.parents):
        raise OSError(errno.ELOOP, "a link in the directory of a store is not followed")
    for each in reversed(wanted):
        each.mkdir(OWNER_ONLY_FOLDER, exist_ok=True)


@contextmanager
def errors_translated(path: Path) -> Generator[None]:
    """Raise errors of the file system as `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror or error}",
            hint="check the directory of the store: its mode, its owner and the space that is left",
        ) from error
