"""Locks of the sessions in a directory, and what a writer that was killed has left.

A lock file has a note of the batch that is being written. The kernel releases the lock of a process
that ends; the next one to have it finds the note and cuts the file back. Lock files are never
removed, 64 for all sessions, so that no lock is on a file that was deleted.
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from steersman import _json
from steersman.errors import StoreError
from steersman.stores.entry_json import Place, encode

__all__ = ["FileLocks", "clear_note", "errors_translated", "make_folders", "write_note"]

OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
LOCKS = ".locks"
LOCK_COUNT = 64
LONGEST_NOTE = 1 << 16


class FileLocks:
    """The locks of the sessions below `root`."""

    def __init__(self, root: Path, timeout: float) -> None:
        self._root = root
        self._timeout = timeout

    @contextmanager
    def held(self, place: Place, how: int) -> Generator[int]:
        """Hold the lock of a session, after undoing what a killed writer has left.

        A session that was never written needs no lock to be read: then -1 is given.
        """
        name = zlib.crc32(encode([place.project, place.session])) % LOCK_COUNT
        path = self._root / LOCKS / f"{name:02d}"
        if how == fcntl.LOCK_SH and not path.exists():
            yield -1
            return
        with errors_translated(path):
            make_folders(self._root, path.parent)
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        try:
            _wait_for(number, how, self._timeout, place)
            with errors_translated(path):
                _undo(number, self._root)
            yield number
        finally:
            os.close(number)


def write_note(lock: int, path: Path, size: int) -> None:
    """Write down, in the lock file, which file is being written, and its size before."""
    os.pwrite(lock, encode({"path": str(path), "size": size}), 0)


def clear_note(lock: int) -> None:
    """Remove the note: what it was about is written whole."""
    os.ftruncate(lock, 0)


def _undo(lock: int, root: Path) -> None:
    """Cut a file back whose writer was killed. Readers that share the lock may do so at once."""
    if not os.fstat(lock).st_size:
        return
    try:
        note = _json.loads(os.pread(lock, LONGEST_NOTE, 0))
        path, size = root / note["path"], int(note["size"])
    except (ValueError, TypeError, KeyError):
        # The writer was killed while it wrote the note, before it wrote anything else.
        path, size = None, 0
    if path is not None:
        with suppress(FileNotFoundError):
            if path.stat().st_size > size:
                os.truncate(path, size)
    clear_note(lock)


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
