"""A private copy of a conversation in a store, as files that the CLI resumes from.

    <config>/steersman/resumed-<session id>-<random>/projects/<project key>/<session id>.jsonl

Directories have mode 0700 and files 0600. The directory is locked as long as its session runs: one
that is not locked was left by a host program that was killed, or by one whose store did not take
everything.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from steersman import _json
from steersman._json import JsonDict
from steersman.mirror.comparing import meta_path
from steersman.mirror.queue import FILE_END
from steersman.ports import SessionStore
from steersman.stores.optional_methods import chunks, subkeys
from steersman.transcripts.identity import AGENT_METADATA
from steersman.transcripts.keys import SessionKey, SessionStoreEntry, is_safe_subpath

OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
RESUMED = "resumed-"
FORK = "resumed-fork-"
"""How the names of copies begin; the second if nothing is ever appended to them."""


def place_of_copies(config: Path | None, owner: tuple[int, ...]) -> Path:
    """Return the directory for copies, given the CLI's configuration directory.

    A folder of another user could lead us elsewhere, so the copies for a CLI of another user are
    among the temporary files, where only their owner can rename them.
    """
    is_safe = config is not None and not owner
    return config / "steersman" if is_safe and config else Path(tempfile.gettempdir())


class PrivateCopy:
    """The files of one conversation, until `remove()`."""

    def __init__(self, folder: Path, key: SessionKey, lock: int) -> None:
        self.folder = folder
        self.key = key
        self.path = _main_file(folder, key)
        """The file to resume from."""
        self._lock = lock

    @classmethod
    def create(cls, place: Path, key: SessionKey, *, is_fork: bool) -> PrivateCopy:
        """Create an empty, locked directory for the conversation `key`."""
        place.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        prefix = FORK if is_fork else RESUMED
        folder = place / f"{prefix}{key['session_id']}-{secrets.token_hex(4)}"
        folder.mkdir(OWNER_ONLY_FOLDER)
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(folder, key, lock)

    async def fill(self, store: SessionStore, owner: tuple[int, ...]) -> int:
        """Write the conversation and its subagents; returns how many entries it has."""
        count = await self._write(store, self.key, self.path)
        if count:
            for subpath in await subkeys(store, self.key):
                if not is_safe_subpath(subpath):
                    continue
                part: SessionKey = {
                    "project_key": self.key["project_key"],
                    "session_id": self.key["session_id"],
                    "subpath": subpath,
                }
                path = self.path.with_name(self.key["session_id"]) / f"{subpath}{FILE_END}"
                await self._write(store, part, path)
            if owner:
                await asyncio.to_thread(_hand_over, self.folder, owner)
        return count

    async def _write(self, store: SessionStore, key: SessionKey, path: Path) -> int:
        await asyncio.to_thread(_make_folder, path.parent, self.folder)
        count, meta = 0, None
        file = await asyncio.to_thread(_create, path)
        try:
            async for chunk in chunks(store, key):
                meta = await asyncio.to_thread(_write_lines, file, chunk) or meta
                count += len(chunk)
        finally:
            await asyncio.to_thread(file.close)
        if meta is not None:
            await asyncio.to_thread(_write_meta, meta_path(path), meta)
        return count

    def release(self) -> None:
        """Unlock the directory and leave it, for the next session that opens the conversation."""
        number, self._lock = self._lock, -1
        if number >= 0:
            os.close(number)

    def remove(self) -> None:
        """Remove the directory. May be called again; never raises."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            # A process that is ending may have written while it was removed.
            shutil.rmtree(self.folder, ignore_errors=True)
        self.release()


def left_behind(place: Path, session_id: str, owner: tuple[int, ...] = ()) -> Iterator[PrivateCopy]:
    """Yield the copies of a conversation that no session uses any more, locked by us now.

    Copies that were made for a fork have nothing of their own. All of those are removed here.
    """
    for folder in sorted(place.glob(f"{RESUMED}*")):
        is_fork = folder.name.startswith(FORK)
        if is_fork or folder.name.startswith(f"{RESUMED}{session_id}-"):
            copy = _take_over(folder, owner)
            if copy is not None and is_fork:
                copy.remove()
            elif copy is not None:
                yield copy


def _take_over(folder: Path, owner: tuple[int, ...]) -> PrivateCopy | None:
    """Return an abandoned copy, locked; None if it is in use, or not ours."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = os.fstat(lock).st_uid in (os.geteuid(), *owner[:1])
    except OSError:
        is_ours = False
    if not is_ours:
        os.close(lock)
        return None
    mains = list(folder.glob(f"projects/*/*{FILE_END}"))
    if not mains:
        # Its session was killed before it had written anything.
        PrivateCopy(folder, {"project_key": "", "session_id": ""}, lock).remove()
        return None
    main = mains[0]
    key: SessionKey = {"project_key": main.parent.name, "session_id": main.name[: -len(FILE_END)]}
    return PrivateCopy(folder, key, lock)


def _main_file(folder: Path, key: SessionKey) -> Path:
    return folder / "projects" / key["project_key"] / f"{key['session_id']}{FILE_END}"


def _make_folder(folder: Path, top: Path) -> None:
    """Create a folder below `top`, each part with mode 0700, whatever the umask."""
    if folder != top and not folder.exists():
        _make_folder(folder.parent, top)
        folder.mkdir(OWNER_ONLY_FOLDER)


def _create(path: Path) -> BinaryIO:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    return os.fdopen(number, "wb")


def _write_lines(file: BinaryIO, entries: Iterable[SessionStoreEntry]) -> JsonDict | None:
    """Write entries; returns the last one that belongs into the file `.meta.json`."""
    meta: JsonDict | None = None
    for entry in entries:
        if entry["type"] == AGENT_METADATA:
            meta = cast("JsonDict", entry)
        else:
            file.write(_json.dump_line(entry))
    return meta


def _write_meta(path: Path, meta: JsonDict) -> None:
    with _create(path) as file:
        file.write(_json.dumps({name: meta[name] for name in meta if name != "type"}))


def _hand_over(folder: Path, owner: tuple[int, ...]) -> None:
    """Give all files to another user; the top folder last, so that nothing is changed meanwhile."""
    for root, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            os.chown(Path(root, name), *owner[:2], follow_symlinks=False)
    os.chown(folder, *owner[:2], follow_symlinks=False)
