"""Do the limits of the system leave room: open files, processes, command line, pipes."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterable

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, warned

FEWEST_FILES = 64
FEW_FILES = 256
SMALL_PIPE = 16 * 1024
LONGEST_WORD = 128 * 1024
"""Bytes of one word of a command line on Linux."""


def limits(fewest: int = FEWEST_FILES, few: int = FEW_FILES) -> Check:
    """Return the check: it fails below `fewest` open files, and warns below `few`."""

    async def run(machine: Machine) -> Iterable[Finding]:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        files = sys.maxsize if files == resource.RLIM_INFINITY else files
        if files < fewest:
            return failed(f"only {files} files may be open", "raise it: ulimit -n 4096")
        words = os.sysconf("SC_ARG_MAX")
        room = sum(len(name) + len(value) + 2 for name, value in machine.env.items())
        if words > 0 and room > words // 2:
            return failed(
                f"the environment has {room} bytes; command line and environment may have {words}",
                "unset large variables, or pass fewer with inherit_env=",
            )
        long = [name for name, value in machine.env.items() if len(value) >= LONGEST_WORD]
        if long and sys.platform == "linux":
            return failed(f"{long[0]} is longer than the {LONGEST_WORD} bytes that one may have")
        pipe = _pipe_size()
        text = f"{files} open files, {words} bytes of command line, pipes of {pipe} bytes"
        if files < few:
            return warned(text, "raise the open files: ulimit -n 4096")
        if 0 < pipe < SMALL_PIPE:
            return warned(text, "close programs of this user that hold many pipes")
        return ok(text)

    return Check("limits", run)


def _pipe_size() -> int:
    """Return how many bytes a new pipe holds; 0 if not known."""
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415 - not everywhere

    reading, writing = os.pipe()
    try:
        with contextlib.suppress(OSError):
            return fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ)
        return 0
    finally:
        os.close(reading)
        os.close(writing)


LIMITS = limits()
