"""What hosts that were killed have left behind."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, skipped, warned


async def _run(machine: Machine) -> Iterable[Finding]:
    folders, processes = machine.leftovers
    if not folders and not processes:
        return skipped("nothing is left of hosts that were killed")
    return warned(
        f"hosts that were killed have left {processes} processes, and {folders} directories in"
        f" {machine.temporary}",
        "start a session: it removes them",
    )


LEFTOVERS = Check("leftovers", _run)
