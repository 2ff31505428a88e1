"""One owner per conversation: `<config>/steersman/<session id>.lock`, beside the CLI's own files.

The kernel releases a file lock when its process ends, however that happens. The file has the pid of
the owner, the time, and the CLI that it runs: a CLI can outlive its host program for a moment, and
until it has ended the conversation is not free. Where no file can be locked, conversations are
locked within this process only.

A process that was killed leaves its files. Each process removes, once, those that have no owner.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import stat
import threading
import time
import weakref
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._process import identity_of
from steersman.errors import SessionInUse

log = logging.getLogger("steersman.session")

FOLDER = "steersman"
SUFFIX = ".lock"
OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
NOTE_SIZE = 512
"""Bytes of a lock file."""
_PLAIN = re.compile(r"[A-Za-z0-9-]{1,100}")
MOST_TRIES = 100
"""How often a lock file may be removed by its last owner while we lock it."""
MOST_SWEPT = 500
"""How many lock files a process looks at, to remove those of processes that were killed."""
SWEEPING, LOOK_AGAIN = 0.1, 0.001
"""Seconds that a lock without an owner may be held by a process that removes the file."""
HINT = "close that session, wait for it with wait=seconds, or work on a copy with fork_session=True"

_held: weakref.WeakValueDictionary[Hashable, ConversationLock] = weakref.WeakValueDictionary()
"""The locks of this process, by place and session id."""
_guard = threading.RLock()
_warned: set[str] = set()
_swept: set[str] = set()
"""The places whose left files this process has removed."""


@dataclass(frozen=True, slots=True)
class LockDirectory:
    """Where the lock files of a CLI are."""

    config: str
    """The configuration directory of the CLI."""
    owner: tuple[int, ...] = ()
    """User and group of the CLI, if it runs as another user: what is created belongs to it."""


def lock_directory(env: Mapping[str, str], owner: tuple[int, ...] = ()) -> LockDirectory | None:
    """Return the place of the lock files for a CLI with the environment `env`, if it is known."""
    config = env.get("CLAUDE_CONFIG_DIR")
    if not config and not env.get("HOME"):
        return None
    return LockDirectory(config or os.path.join(env["HOME"], ".claude"), owner[:2])  # noqa: PTH118


def claim(place: LockDirectory | None, session_id: str, key: Hashable = None) -> ConversationLock:
    """Lock a conversation. Raises `SessionInUse` if it has an owner.

    `place` is None for a CLI whose files are not on this machine. `key` then names the machine,
    and the lock holds within this process.
    """
    identity = (place.config if place else key, session_id)
    with _guard:
        owner = _held.get(identity)
        if owner is not None and owner.is_held:
            raise _in_use(session_id, os.getpid(), owner.since, is_ending=owner.is_ending)
        number = -1 if place is None else _lock_file(place, session_id)
        lock = ConversationLock(place, session_id, number)
        _held[identity] = lock
    return lock


class ConversationLock:
    """The lock on one conversation, until `release()`, garbage collection or the process's end."""

    def __init__(self, place: LockDirectory | None, session_id: str, number: int) -> None:
        self.is_held = True
        self.since = time.time()
        """When the conversation was locked, in seconds since the epoch."""
        self._place = place
        self._session_id = session_id
        self._number = number
        self._note: JsonDict = {
            "pid": os.getpid(),
            "since": self.since,
            "host": identity_of(os.getpid()),
        }
        self.runs(None)

    @property
    def is_ending(self) -> bool:
        """Whether the owner is closing."""
        return bool(self._note.get("is_ending"))

    def runs(self, pid: int | None) -> None:
        """Write down which CLI the owner runs, if it runs on this machine. Never raises."""
        self._write(cli_pid=pid, cli=None if pid is None else identity_of(pid))

    def ends(self) -> None:
        """Write down that the owner is closing. Never raises."""
        self._write(is_ending=True)

    def _write(self, **fields: Json) -> None:
        self._note.update(fields)
        if self._number >= 0:
            # All notes have one length, so that a new one replaces the last one in one step.
            with suppress(OSError):
                os.pwrite(self._number, _json.dumps(self._note).ljust(NOTE_SIZE), 0)

    def release(self) -> None:
        """Unlock the conversation and remove the file. May be called again; never raises."""
        with _guard:
            self.is_held = False
            number, self._number = self._number, -1
            if number < 0:
                return
            with suppress(OSError):
                if self._place is not None:
                    # Still locked: an opener that gets the lock later sees that this is removed.
                    folder, name = self._place.config, _name_of(self._session_id)
                    os.unlink(os.path.join(folder, FOLDER, name))  # noqa: PTH108, PTH118
                # Explicit, because a process that is being forked may hold a copy for a moment.
                fcntl.flock(number, fcntl.LOCK_UN)
            os.close(number)

    def forget(self) -> None:
        """Close the descriptor in a forked child, without unlocking what the parent has locked."""
        self.is_held = False
        number, self._number = self._number, -1
        if number >= 0:
            with suppress(OSError):
                os.close(number)

    def __del__(self) -> None:
        if self.is_held:
            self.release()


def _in_child() -> None:
    """Give up all locks in a forked child: they are the parent's."""
    global _guard  # noqa: PLW0603 - another thread of the parent may have held it
    _guard = threading.RLock()
    for lock in list(_held.values()):
        lock.forget()


os.register_at_fork(after_in_child=_in_child)


def _name_of(session_id: str) -> str:
    # `resume=` may be any word.
    is_plain = _PLAIN.fullmatch(session_id)
    name = session_id if is_plain else hashlib.sha256(session_id.encode()).hexdigest()
    return name + SUFFIX


def _lock_file(place: LockDirectory, session_id: str) -> int:
    """Return the descriptor of the locked file, or -1 if files cannot be locked there."""
    try:
        folder = _open_folder(place)
    except OSError as error:
        _warn(place, error)
        return -1
    try:
        if place.config not in _swept:
            _swept.add(place.config)
            _sweep(folder, but=_name_of(session_id))
        return _lock_in(folder, place, session_id)
    except OSError as error:
        _warn(place, error)
        return -1
    finally:
        os.close(folder)


def _lock_in(folder: int, place: LockDirectory, session_id: str) -> int:
    name = _name_of(session_id)
    for _ in range(MOST_TRIES):
        number = _open_file(folder, name, place.owner)
        try:
            _take(number, session_id)
            if _is_named(folder, name, number):
                return number
        except BaseException:
            os.close(number)
            raise
        # Its last owner has removed it in the meantime.
        os.close(number)
    raise _in_use(session_id, None, None)


def _take(number: int, session_id: str) -> None:
    """Lock an open file. Raises `SessionInUse` if another process or a lost host's CLI has it."""
    until = time.monotonic() + SWEEPING
    while not _try(number):
        note = _read(number)
        pid = _whole(note, "pid")
        if pid is not None and note.get("host") == identity_of(pid):
            since, is_ending = _seconds(note, "since"), note.get("is_ending") is True
            raise _in_use(session_id, pid, since, is_ending=is_ending)
        # A new owner has not replaced the note of the last one yet, or the file is being removed.
        if time.monotonic() >= until:
            raise _in_use(session_id, None, None)
        time.sleep(LOOK_AGAIN)
    note = _read(number)
    if _runs_cli(note):
        pid, since = _whole(note, "cli_pid"), _seconds(note, "since")
        raise _in_use(session_id, pid, since, is_ending=True, is_cli=True)


def _try(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _runs_cli(note: JsonObject) -> bool:
    """Whether the CLI of a host that has ended still runs."""
    pid, identity = _whole(note, "cli_pid"), note.get("cli")
    return pid is not None and identity is not None and identity == identity_of(pid)


def _sweep(folder: int, *, but: str) -> None:
    """Remove the files that processes have left: those that no process has locked. Never raises."""
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as found:
        names = [each.name for each in islice(found, MOST_SWEPT)]
    for name in names:
        if name.endswith(SUFFIX) and name != but:
            with suppress(OSError):
                _remove_if_left(folder, name)


def _remove_if_left(folder: int, name: str) -> None:
    number = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode) or not _try(number):
            return
        # Looked at again under the lock: its owner may have removed it, and another one made anew.
        if not _runs_cli(_read(number)) and _is_named(folder, name, number):
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(number)


def _open_folder(place: LockDirectory) -> int:
    """Open the folder of the lock files, and create it if it is missing."""
    path, owner = place.config, place.owner
    if not os.path.isdir(path):  # noqa: PTH112 - every start comes here, and `pathlib` is slow
        with suppress(FileExistsError):
            Path(path).mkdir(OWNER_ONLY_FOLDER, parents=not owner)
            if owner:
                os.chown(path, *owner, follow_symlinks=False)
    # A folder of another user could lead us elsewhere.
    config = os.open(path, os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if owner else 0))
    try:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, OWNER_ONLY_FOLDER, dir_fd=config)
            if owner:
                os.chown(FOLDER, *owner, dir_fd=config, follow_symlinks=False)
        return os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=config)
    finally:
        os.close(config)


def _open_file(folder: int, name: str, owner: tuple[int, ...]) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    number = os.open(name, flags, OWNER_ONLY, dir_fd=folder)
    about = os.fstat(number)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(number)
        raise OSError(f"{name} is not a plain file")
    if owner and about.st_uid != owner[0]:
        os.fchown(number, *owner)
    return number


def _is_named(folder: int, name: str, number: int) -> bool:
    try:
        named = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(number))


def _read(number: int) -> JsonObject:
    try:
        note = _json.loads(os.pread(number, NOTE_SIZE, 0))
    except (OSError, ValueError):
        return {}
    return note if _json.is_object(note) else {}


def _whole(note: JsonObject, name: str) -> int | None:
    found = note.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _seconds(note: JsonObject, name: str) -> float | None:
    found = note.get(name)
    return float(found) if isinstance(found, int | float) else None


def _in_use(
    session_id: str,
    pid: int | None,
    since: float | None,
    *,
    is_ending: bool = False,
    is_cli: bool = False,
) -> SessionInUse:
    who = "another process" if pid is None else f"the process {pid}"
    if pid == os.getpid():
        who = f"this process ({pid})"
    if is_cli:
        who = f"the CLI of a host program that has ended (process {pid})"
    at = "" if since is None else f" since {_written(since)}"
    return SessionInUse(
        f"the conversation {session_id} is in use: {who} has it open{at}",
        hint=HINT,
        pid=pid,
        since=since,
        is_ending=is_ending,
    )


def _written(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _warn(place: LockDirectory, error: OSError) -> None:
    if place.config not in _warned:
        _warned.add(place.config)
        log.warning(
            "conversations are locked within this process only: %s: %s",
            Path(place.config, FOLDER),
            error.strerror or error,
        )
