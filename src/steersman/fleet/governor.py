"""`Governor`: when a fleet begins no further turn; and how much memory is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from steersman.options import checks

Read = Callable[[str], str | None]
"""Returns the content of a file; None if there is none."""

UNLIMITED = 1 << 60
"""What version 1 writes for no limit is above this."""

ROOT = "/sys/fs/cgroup"
UNIFIED = 2
"""The version with one tree for all controllers."""


def free_memory(read: Read | None = None) -> int | None:
    """Return the bytes that can be used before the system kills; None if it is not known.

    That is the least of what the machine has, and what each control group up to the root allows.
    Pages of files that are not in use count as free: the system reuses them first.
    """
    read = read or _read
    found = [meminfo_free(read("/proc/meminfo") or "")]
    for folder, version in cgroup_paths(read("/proc/self/cgroup") or ""):
        found.append(_of_group(read, folder, version))
    return min((each for each in found if each is not None), default=None)


def meminfo_free(text: str) -> int | None:
    """Return the bytes that the kernel calls available, from `/proc/meminfo`."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable" and value.split():
            return int(value.split()[0]) * 1024
    return None


def cgroup_paths(text: str) -> list[tuple[str, int]]:
    """Return the folders of the groups of a process, from `/proc/self/cgroup`, with the version.

    In a container the path of the host may not exist; its own group is then the root.
    """
    found: list[tuple[str, int]] = []
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            base, version = ROOT, UNIFIED
        elif "memory" in controllers.split(","):
            base, version = f"{ROOT}/memory", 1
        else:
            continue
        parts = [each for each in path.split("/") if each and each != ".."]
        places = ["/".join((base, *parts[:n])) for n in range(len(parts), -1, -1)]
        found += [(place, version) for place in places]
    return found


def _of_group(read: Read, folder: str, version: int) -> int | None:
    names = (
        ("memory.max", "memory.current", "inactive_file")
        if version == UNIFIED
        else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    most, used = (_number(read(f"{folder}/{name}")) for name in names[:2])
    if most is None or used is None or most >= UNLIMITED:
        return None
    return max(most - used + _unused(read(f"{folder}/memory.stat") or "", names[2]), 0)


def _unused(stat: str, name: str) -> int:
    for line in stat.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _number(value) or 0
    return 0


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _read(path: str) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, 1 << 16).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Governor:
    """Holds turns back while memory or the rate limit of the API does not allow more."""

    memory_free: int = 256 << 20
    """Bytes that must be free before a CLI is started. 0 is no limit.

    With less, sessions that are not in use are closed, one at a time.
    """
    cli_memory: int = 190 << 20
    """Bytes that a CLI takes. They are counted while it starts, before it has taken them."""
    quiet: float = 10.0
    """Seconds without a 429 or 529 after which one turn more may run at once."""
    read_memory: Callable[[], int | None] = free_memory
    """Returns the free bytes: of the control group (version 2 or 1) or the machine. None if they
    are not known; then nothing is held.
    """

    def __post_init__(self) -> None:
        checks.whole("governor.memory_free", self.memory_free)
        checks.whole("governor.cli_memory", self.cli_memory)
        checks.positive("governor.quiet", self.quiet)
        checks.callable_("governor.read_memory", self.read_memory)
