"""When a process started, and on which boot: no later process with the same pid has both.

Only Linux reports them. Elsewhere the functions return `None`.
"""

from __future__ import annotations

import functools
import os

__all__ = ["boot_name", "has_ended", "identity_of", "start_time"]

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
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            boot = file.read().strip()
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - `pathlib` is slow
    except OSError:
        return None


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
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - `pathlib` is slow to load
            fields = file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return fields if len(fields) > STARTED else None
