"""Is the clock right enough for certificates: not before files that exist already."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok
from steersman.errors import LaunchError

DAY = 86400.0
FIRST = 1_735_689_600.0
"""The beginning of 2025, before which no supported CLI was made."""
YEARS = 20 * 365 * DAY


async def _run(machine: Machine) -> Iterable[Finding]:
    shown = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(machine.now))
    if machine.now < _installed(machine) - DAY:
        return failed(
            f"the clock is at {shown}, before the CLI was installed: certificates look invalid",
            "set the clock, for example with `timedatectl set-ntp true`",
        )
    if machine.now > FIRST + YEARS:
        return failed(
            f"the clock is at {shown}: certificates look expired",
            "set the clock, for example with `timedatectl set-ntp true`",
        )
    return ok(shown)


def _installed(machine: Machine) -> float:
    """Return when the CLI was installed, if that is known and can be."""
    try:
        made = os.stat(machine.cli).st_mtime  # noqa: PTH116 - one call
    except (LaunchError, OSError):
        return FIRST
    return made if FIRST < made < FIRST + YEARS else FIRST


CLOCK = Check("clock", _run)
