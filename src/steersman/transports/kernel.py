"""What this system knows about processes, and the few calls that only Linux has.

Everything in `transports` that differs between Linux and other systems is in this file: the process
table, `prctl`, environments of processes, pipe sizes. `steersman._process` has start times. Where a
system lacks something, a function returns that it does: False, None, or no process. With the
variable `PORTABLE` Linux lacks all of it, so that tests can show what is left elsewhere.

The guard loads this file too, so it imports next to nothing.
"""

# Importing pathlib and contextlib would double the startup time of the guard.
# ruff: noqa: PTH110, PTH123, PTH208, SIM105

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Iterable
else:
    # `signal` imports `enum`, which takes a third of the startup time of the guard.
    import _signal as signal

__all__ = [
    "IS_LINUX",
    "PORTABLE",
    "PR_SET_CHILD_SUBREAPER",
    "PR_SET_PDEATHSIG",
    "Row",
    "below",
    "can_watch",
    "count_with",
    "descendants",
    "enlarge_pipe",
    "environment_of",
    "kill_below",
    "kill_group",
    "kill_with",
    "prctl",
    "send_signal",
    "state_of",
    "watch_process",
]

Row = tuple[int, int, int, str]
"""One process: pid, pid of its parent, process group, state letter."""

PORTABLE = "STEERSMAN_PORTABLE"
IS_LINUX = sys.platform == "linux" and PORTABLE not in os.environ
PROC = "/proc" if IS_LINUX else "/proc-is-not-here"

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PIDFD_OPEN = 434
"""The number of a system call, which is the same on all machines that Python runs on."""
ROUND = 0.001
"""Seconds between two looks at the process table."""
MOST_READ = 16 * 1024
"""Bytes of a file of `/proc`; none that `state_of` reads is as long."""
INHERITED = frozenset(
    b"Umask Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp "
    b"Seccomp_filters".split()
)
"""Lines of `/proc/PID/status` that a child inherits, and a library of the host may change."""


def prctl(option: int, value: int) -> bool:
    """Call Linux's `prctl`. Return False if that fails, or on another system."""
    if not IS_LINUX:
        return False
    for call in (call_by_dlsym, call_by_ctypes):
        try:
            return call("prctl", (option, value, 0, 0, 0)) == 0
        except (ImportError, OSError, AttributeError):
            continue
    return False


def call_by_dlsym(name: str, arguments: tuple[int, ...]) -> int:
    """Call a C function through `_ctypes`, which takes a fifth of the import time of `ctypes`."""
    import _ctypes  # noqa: PLC0415 - only on Linux

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return int(_ctypes.call_cdeclfunction(_ctypes.dlsym(library, name), arguments))


def call_by_ctypes(name: str, arguments: tuple[int, ...]) -> int:
    """Call a C function through `ctypes`, for interpreters without `_ctypes.dlsym`."""
    import ctypes  # noqa: PLC0415 - as above

    return int(getattr(ctypes.CDLL(None), name)(*arguments))


def watch_process(pid: int) -> int:
    """Return a descriptor that becomes readable when a process ends, or -1. Only on Linux."""
    if sys.platform != "linux" or not IS_LINUX:
        return -1
    try:
        if hasattr(os, "pidfd_open"):
            return os.pidfd_open(pid)
        # An interpreter that was built for older systems has no name for it.
        return call_by_dlsym("syscall", (PIDFD_OPEN, pid, 0))
    except (ImportError, OSError, AttributeError):
        return -1


def can_watch() -> bool:
    """Return whether a process can watch one that is not its child, and list its own children."""
    own = os.getpid()
    watched = watch_process(own)
    if watched < 0:
        return False
    os.close(watched)
    return os.path.exists(f"{PROC}/{own}/task/{own}/children")


def state_of(pid: int) -> bytes:
    """Return what a child of a process inherits beside environment and directories.

    These are its limits, ids, rights, umask, control group and OOM score. Empty if not known.
    """
    try:
        status = content_of(f"{PROC}/{pid}/status").splitlines()
        others = [content_of(f"{PROC}/{pid}/{name}") for name in ("limits", "cgroup")]
        others.append(content_of(f"{PROC}/{pid}/oom_score_adj"))
    except OSError:
        return b""
    return b"\n".join([line for line in status if line.partition(b":")[0] in INHERITED] + others)


def content_of(path: str) -> bytes:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, MOST_READ)
    finally:
        os.close(number)


def send_signal(pid: int, number: int) -> None:
    """Send a signal, if the process still runs and belongs to this user."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # The process has exited, or the pid belongs to another user now.
        pass


def kill_group(group: int) -> None:
    """Send SIGKILL to a process group, if it still exists and belongs to this user."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_below(root: int, groups: Collection[int] = ()) -> list[Row]:
    """Send SIGKILL once to every process below `root`. Return those that were still running."""
    left = below(root, groups)
    # A group is killed in one call, so that processes that keep forking cannot escape.
    for group in {row[2] for row in left} - {0, 1, root, os.getpgid(0)}:
        kill_group(group)
    for pid, _, _, _ in left:
        send_signal(pid, signal.SIGKILL)
    return [row for row in left if row[3] not in "ZX"]


def below(root: int, groups: Collection[int] = ()) -> list[Row]:
    """Return the processes below `root`, by the fastest means this system has."""
    rows = rows_by_children(root)
    if rows is None:
        rows = rows_by_proc()
    if rows is None:
        rows = rows_by_ps()
    return descendants(rows, root, groups)


def descendants(rows: Iterable[Row], root: int, groups: Collection[int] = ()) -> list[Row]:
    """Return the rows below `root`, and those that share a process group with one of them.

    `groups` holds further groups: an orphan is no longer below `root`, but stays in its group.
    """
    rest = list(rows)
    family: dict[int, Row] = {}
    known = {root}
    related = set(groups)
    while True:
        found = [row for row in rest if row[1] in known or row[2] in related]
        found = [row for row in found if row[0] not in known]
        if not found:
            return list(family.values())
        family.update((row[0], row) for row in found)
        known.update(row[0] for row in found)
        related.update(row[2] for row in found if row[2] not in (0, 1, root))


def rows_by_children(root: int) -> list[Row] | None:
    """Return the tree from Linux's lists of children. Costs as much as the tree is large."""
    if not os.path.exists(f"{PROC}/{root}/task/{root}/children"):
        return None
    rows: list[Row] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        row = row_of(pid)
        if row is not None:
            rows.append(row)
        waiting.extend(children_of(pid))
    return rows


def children_of(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"{PROC}/{pid}/task"):
            with open(f"{PROC}/{pid}/task/{thread}/children", "rb") as file:
                children += [int(child) for child in file.read().split()]
    except OSError:
        # The process exited meanwhile. Its children have a new parent and are found there.
        pass
    return children


def rows_by_proc() -> list[Row] | None:
    """Return every process, for a Linux kernel that keeps no lists of children."""
    rows = [row for pid in _pids() or () if (row := row_of(pid)) is not None]
    return rows or None


def row_of(pid: int) -> Row | None:
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            # The second field is the program's name in parentheses, and may hold any character.
            state, parent, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return pid, int(parent), int(group), state.decode()


def rows_by_ps() -> list[Row]:
    """Return every process, as POSIX `ps` lists it: for macOS and the BSDs."""
    reader, writer = os.pipe()
    try:
        pid = os.posix_spawnp(
            "ps",
            ["ps", "-axo", "pid=,ppid=,pgid=,stat="],
            {"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
            file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
        )
    except OSError:
        # Without `ps` only the CLI itself is known.
        os.close(reader)
        return []
    finally:
        os.close(writer)
    with open(reader, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    return [row for row in rows_of_ps(text) if row[0] != pid]


def rows_of_ps(text: str) -> list[Row]:
    fields = [line.split() for line in text.splitlines()]
    return [
        (int(pid), int(parent), int(group), state[0])
        for pid, parent, group, state in (found for found in fields if len(found) == 4)  # noqa: PLR2004
    ]


def environment_of(pid: int) -> list[bytes]:
    """Return the variables that a process was started with, as NAME=VALUE; none if not known."""
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def kill_with(wanted: Callable[[list[bytes]], bool], patience: float) -> int:
    """Kill the processes whose variables are `wanted`, until none is left; return how many.

    The process itself is left out. Gives up after `patience` seconds. Only on Linux.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + patience
    while True:
        found = [pid for pid in _pids() or () if _kill_if(wanted, pid)]
        killed.update(found)
        if not found or time.monotonic() > deadline:
            return len(killed)
        time.sleep(ROUND)


def count_with(wanted: Callable[[list[bytes]], bool]) -> int:
    """Return how many processes beside this one have variables that are `wanted`. Only on Linux."""
    own = os.getpid()
    return sum(pid != own and wanted(environment_of(pid)) for pid in _pids() or ())


def _kill_if(wanted: Callable[[list[bytes]], bool], pid: int) -> bool:
    """Send SIGKILL to a process whose variables are `wanted`; return whether it was running."""
    if (
        sys.platform != "linux"
        or not IS_LINUX
        or pid == os.getpid()
        or not wanted(environment_of(pid))
    ):
        return False
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Again: the pid may have been that of another process before `pidfd_open`.
        if not wanted(environment_of(pid)):
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(process)
    return True


def enlarge_pipe(number: int, size: int) -> None:
    """Set the size of a pipe, where that can be done."""
    if sys.platform == "linux" and IS_LINUX:
        import fcntl  # noqa: PLC0415 - the guard does not need it

        try:
            fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, size)
        except OSError:
            # If the user's limit is exhausted, the default size is good enough.
            pass


def _pids() -> list[int] | None:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return None
