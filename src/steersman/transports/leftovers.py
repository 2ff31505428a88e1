"""Private directories that killed hosts have left behind.

The guard removes the directory of its CLI. If host and guard are both killed, nothing does, so the
next host that writes private files removes it. The name of a directory contains who made it: the
pid, when that process started, and on which machine. Only directories that are certainly left
behind are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import stat
import time
from pathlib import Path

__all__ = ["new_private_path", "sweep", "sweep_once"]

PREFIX = "steersman-run-"
MOST_SEEN = 10_000
"""Entries of the temporary directory that are looked at."""
MOST_REMOVED = 100
OLD = 24 * 3600.0
"""Seconds after which a directory of another machine, container or boot may be removed."""
OWNER_ONLY = 0o700
UNKNOWN = "0"

_NAME = re.compile(re.escape(PREFIX) + r"(\d{1,10})-(\d{1,20})-([0-9a-f]{1,16})-[0-9a-f]{24}")
_swept: set[str] = set()


def new_private_path(place: str) -> str:
    """Return the path for a new private directory in `place`, which names this process."""
    pid = os.getpid()
    owner = f"{pid}-{_started(pid) or UNKNOWN}-{_machine()}"
    return f"{place}/{PREFIX}{owner}-{os.urandom(12).hex()}"


def sweep_once(place: str) -> None:
    """Sweep `place` if this process has not done so. Never raises."""
    if place not in _swept:
        _swept.add(place)
        with contextlib.suppress(OSError):
            sweep(place)


def sweep(place: str) -> int:
    """Remove the private directories in `place` whose hosts no longer run; return how many."""
    removed = 0
    with os.scandir(place) as entries:
        for entry in itertools.islice(entries, MOST_SEEN):
            found = _NAME.fullmatch(entry.name)
            if found is None or removed >= MOST_REMOVED:
                continue
            with contextlib.suppress(OSError):
                removed += _remove_if_left(entry.path, int(found[1]), found[2], found[3])
    return removed


def _remove_if_left(path: str, pid: int, started: str, machine: str) -> bool:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(number)
        is_ours = about.st_uid == os.getuid() and stat.S_IMODE(about.st_mode) == OWNER_ONLY
        if not is_ours or not _is_left(pid, started, machine, time.time() - about.st_mtime):
            return False
        for name in os.listdir(number):  # noqa: PTH208 - of this directory, whatever its path is now
            os.unlink(name, dir_fd=number)
    finally:
        os.close(number)
    Path(path).rmdir()
    return True


def _is_left(pid: int, started: str, machine: str, age: float) -> bool:
    if machine == _machine() != UNKNOWN:
        return _started(pid) != started
    # The pid may be that of a process which cannot be seen from here.
    return age > OLD and not _is_alive(pid)


def _started(pid: int) -> str | None:
    """Return when a process started, in ticks since the boot; None if that is not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as the guard does
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return None


def _machine() -> str:
    """Return a name for this boot of this machine and this pid namespace; `0` if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:  # noqa: PTH123 - as above
            boot = file.read()
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - as above
    except OSError:
        return UNKNOWN
    return hashlib.sha256(boot + str(namespace).encode()).hexdigest()[:16]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
