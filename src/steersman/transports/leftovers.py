"""What killed hosts have left behind: private directories, and processes of their CLIs.

The guard removes the directory of its CLI and ends its process tree. If host and guard are all
killed, nothing does, so the next host does it. The name of a directory, and a variable of each
process of the tree, contain who made it: the pid, when that process started, and on which machine.
Only what is certainly left behind is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import stat
import time
from functools import partial
from pathlib import Path

from steersman import _process
from steersman.transports import kernel

TREE = "STEERSMAN_TREE"
"""The variable that all processes of one CLI's tree inherit: who started it, and which one."""
PREFIX = "steersman-run-"
MOST_SEEN = 10_000
"""Entries of the temporary directory that are looked at."""
MOST_REMOVED = 100
OLD = 24 * 3600.0
"""Seconds after which a directory of another machine, container or boot may be removed."""
OWNER_ONLY = 0o700
UNKNOWN = "0"
KILL_PATIENCE = 2.0
"""Seconds to keep killing processes that do not end."""

_OWNED = r"(\d{1,10})-(\d{1,20})-([0-9a-f]{1,16})-[0-9a-f]{24}"
_NAME = re.compile(re.escape(PREFIX) + _OWNED)
_TREE = re.compile(f"{TREE}={_OWNED}".encode())
_swept: set[str] = set()


def new_private_path(place: str) -> str:
    """Return the path for a new private directory in `place`, which names this process."""
    return f"{place}/{PREFIX}{_owned_name()}"


def new_tree_name() -> str:
    """Return a value of `TREE` for a new process tree, which names this process."""
    return _owned_name()


def end_tree(name: str) -> int:
    """Kill every process that inherited `name` as its `TREE`; return how many. Only on Linux."""
    entry = f"{TREE}={name}".encode()
    return kernel.kill_with(lambda variables: entry in variables, KILL_PATIENCE)


def end_orphans_once() -> None:
    """End the processes that killed hosts have left, if this process has not done so."""
    if TREE not in _swept:
        _swept.add(TREE)
        end_orphans()


def end_orphans(machine: str | None = None) -> int:
    """Kill the processes of trees whose hosts no longer run; return how many. Only on Linux.

    The tree that this process itself is part of is left alone. `machine` is the name that trees of
    this machine have; under another one, a test can have trees that no other host here ends.
    """
    machine = machine or _machine()
    if machine == UNKNOWN:
        return 0
    return kernel.kill_with(partial(_is_orphan, machine), KILL_PATIENCE)


def _is_orphan(here: str, variables: list[bytes]) -> bool:
    for entry in variables:
        found = _TREE.fullmatch(entry)
        if found is not None:
            pid, started, machine = (part.decode() for part in found.groups())
            is_own = entry == f"{TREE}={os.environ.get(TREE)}".encode()
            is_known = started != UNKNOWN and machine == here
            return is_known and not is_own and _process.has_ended(int(pid), started)
    return False


def count_orphans() -> int:
    """Return how many processes `end_orphans` would kill. Only on Linux."""
    machine = _machine()
    return 0 if machine == UNKNOWN else kernel.count_with(partial(_is_orphan, machine))


def count_left(place: str) -> int:
    """Return how many private directories of hosts that no longer run are in `place`."""
    count = 0
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in itertools.islice(entries, MOST_SEEN):
            found = _NAME.fullmatch(entry.name)
            with contextlib.suppress(OSError):
                if found is not None:
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    count += _is_left(int(found[1]), found[2], found[3], age)
    return count


def _owned_name() -> str:
    pid = os.getpid()
    return f"{pid}-{_process.start_time(pid) or UNKNOWN}-{_machine()}-{os.urandom(12).hex()}"


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
        return _process.start_time(pid) != started
    # The pid may be that of a process which cannot be seen from here.
    return age > OLD and not _is_alive(pid)


def _machine() -> str:
    """Return a name for this boot of this machine and this pid namespace; `0` if unknown."""
    boot = _process.boot_name()
    return UNKNOWN if boot is None else hashlib.sha256(boot.encode()).hexdigest()[:16]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
