"""Is there room for transcripts and temporary files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from steersman.diagnosis.checks.config import existing
from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, warned

MEGABYTE = 1_000_000
LEAST = 50 * MEGABYTE
LITTLE = 500 * MEGABYTE


def disk(least: float = LEAST, little: float = LITTLE) -> Check:
    """Return the check: it fails below `least` bytes, and warns below `little`."""

    async def run(machine: Machine) -> Iterable[Finding]:
        temporary = machine.temporary
        if not temporary.is_dir():
            return failed(f"TMPDIR is {temporary}, which is not a directory", "set another TMPDIR")
        if not os.access(temporary, os.W_OK | os.X_OK):
            return failed(f"{temporary} is not writable", "set TMPDIR to a directory of yours")
        places = (existing(machine.config), temporary)
        free = {place: shutil.disk_usage(place).free for place in places}
        place = min(free, key=lambda each: free[each])
        text = f"{free[place] // MEGABYTE} MB are free at {place}"
        if free[place] < least:
            return failed(text, "free some space there, or set TMPDIR or CLAUDE_CONFIG_DIR")
        return warned(text, "free some space there") if free[place] < little else ok(text)

    return Check("disk", run)


DISK = disk()
