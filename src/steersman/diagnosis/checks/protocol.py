"""Does the CLI start, and answer the handshake."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, skipped
from steersman.errors import CliNotFound, SteersmanError


async def _run(machine: Machine) -> Iterable[Finding]:
    try:
        found = await machine.handshake()
    except CliNotFound:
        return skipped("there is no CLI to start")
    except SteersmanError as error:
        evidence = error.evidence.stderr_tail.strip()
        wrote = f"; it wrote: {evidence[-200:]}" if evidence and evidence not in error.what else ""
        return failed(error.what + wrote, error.hint)
    count = len(found.initialized.capabilities)
    return ok(f"{count} capabilities; handshake in {found.seconds:.2f} s")


PROTOCOL = Check(
    "protocol",
    _run,
    "run `claude --version` by hand, and update the CLI",
)
