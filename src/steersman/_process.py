"""When a process started, and on which boot: no later process with the same pid has both.

Also the time since the boot, which cannot be set. Only Linux reports them. Elsewhere the functions
return `None`, and with the variable `STEERSMAN_PORTABLE`, which tests set.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from contextlib import suppress

IS_LINUX = sys.platform == "linux" and "STEERSMAN_PORTABLE" not in os.environ
PROC = "/proc" if IS_LINUX else "/proc-is-not-here"

STATE = 0
STARTED = 19
"""The positions of two fields of `/proc/PID/stat`, counted after the name of the program."""


def start_time(pid: int) -> str | None:
    """Return when a process started, in ticks since the boot; None if that is not known."""
    fields = _fields_of(pid)
    return None if fields is None else fields[STARTED]


@functools.cache
def boot_name() -> str | None:
    """Return a text that differs for each boot and each pid namespace; None if not known."""
    try:
        namespace = os.stat(f"{PROC}/self/ns/pid").st_ino  # noqa: PTH116 - `pathlib` is slow
    except OSError:
        return None
    boot = _boot_id()
    return None if boot is None else f"{boot}-{namespace}"


def since_boot() -> tuple[str, float] | None:
    """Return the id of this boot and the seconds since then; None if they are not known.

    Both are the same in all processes of a machine, containers with a time namespace of their own
    included. The seconds also count while the machine sleeps.
    """
    boot = _boot_id() if sys.platform == "linux" and IS_LINUX else None
    if boot is None:
        return None
    return boot, time.clock_gettime(time.CLOCK_BOOTTIME) - _boot_offset()


@functools.cache
def _boot_id() -> str | None:
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip() or None
    except OSError:
        return None


@functools.cache
def _boot_offset() -> float:
    """Return how many seconds the time namespace of this process is ahead of the machine."""
    # A kernel without time namespaces has no such file.
    with suppress(OSError), open(f"{PROC}/self/timens_offsets", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            name, seconds, nanoseconds = line.split()
            if name == "boottime":
                return int(seconds) + int(nanoseconds) / 1e9
    return 0.0


def identity_of(pid: int) -> str | None:
    """Return pid, start, boot and pid namespace of a process; None if it has ended."""
    return _own_identity() if pid == os.getpid() else _identity_of(pid)


@functools.cache
def _own_identity() -> str | None:
    return _identity_of(os.getpid())


def _identity_of(pid: int) -> str | None:
    boot, fields = boot_name(), _fields_of(pid)
    if boot is None or fields is None:
        return None
    # A zombie has ended, whether or not its parent has noticed.
    return None if fields[STATE] == "Z" else f"{pid}-{fields[STARTED]}-{boot}"


# A forked process may be in another namespace.
os.register_at_fork(after_in_child=boot_name.cache_clear)
os.register_at_fork(after_in_child=_own_identity.cache_clear)
os.register_at_fork(after_in_child=_boot_offset.cache_clear)


def has_ended(pid: int, started: str) -> bool:
    """Return whether the process `pid` that started at `started` has certainly ended."""
    found = start_time(pid)
    if found is not None:
        return found != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        # The process of another user, which this one cannot see.
        return False
    return False


def _fields_of(pid: int) -> list[str] | None:
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - `pathlib` is slow to load
            fields = file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return fields if len(fields) > STARTED else None
