"""Can this machine run a session, and if not, why: `await steersman.doctor()`.

A check is a value; pass others with `checks=`. All run at once, and secrets are removed from what
they found.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace

from steersman.diagnosis.cli_checks import CLI, LOGIN, MCP, POLICY, PROTOCOL, RELEASE, SETTINGS
from steersman.diagnosis.host_checks import CLOCK, CONFIG, DISK, LEFTOVERS, LIMITS, NESTING, NETWORK
from steersman.diagnosis.machine import Handshake, Machine
from steersman.diagnosis.values import Check, Diagnosis, Finding, Status
from steersman.errors import UsageError
from steersman.journal.redaction import Redactor, secrets_in
from steersman.options import Options

__all__ = [
    "CHECKS",
    "Check",
    "Diagnosis",
    "Finding",
    "Handshake",
    "Machine",
    "Status",
    "doctor",
    "examine",
]

CHECKS: tuple[Check, ...] = (
    CLI,
    PROTOCOL,
    RELEASE,
    LOGIN,
    SETTINGS,
    POLICY,
    MCP,
    CONFIG,
    DISK,
    LIMITS,
    NETWORK,
    CLOCK,
    LEFTOVERS,
    NESTING,
)
"""What `doctor` looks at, in this order."""

LONGEST = 45.0
"""Seconds that one check may take."""


async def doctor(
    options: Options | None = None, *, checks: Iterable[Check] | None = None
) -> Diagnosis:
    """Find out whether this machine can run a session with `options`, and if not, why.

    Starts the CLI once, and once more to read its login; sends nothing to the API. Never raises
    because of what it finds, and no finding has a secret.
    """
    if not (options is None or isinstance(options, Options)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("options", options, "an Options value, or None")
    return await examine(Machine(options), CHECKS if checks is None else checks)


async def examine(machine: Machine, checks: Iterable[Check]) -> Diagnosis:
    """Run the checks on a machine, at the same time; findings are in the order of the checks."""
    chosen = tuple(checks)
    for each in chosen:
        if not isinstance(each, Check):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("checks", each, "values of steersman.diagnosis.Check")
    begun = time.monotonic()
    try:
        found = await asyncio.gather(*(_found_by(each, machine) for each in chosen))
    finally:
        await machine.aclose()
    shown = _redactor(machine).shown
    findings = (
        replace(each, name=shown(each.name), text=shown(each.text), cure=shown(each.cure))
        for group in found
        for each in group
    )
    return Diagnosis(tuple(findings), time.monotonic() - begun)


async def _found_by(check: Check, machine: Machine) -> list[Finding]:
    try:
        async with asyncio.timeout(LONGEST):
            found = tuple(await check.run(machine))
    except TimeoutError:
        found = (Finding("fail", f"this check did not end within {LONGEST:g} s"),)
    except Exception as error:  # noqa: BLE001 - also of checks that the caller wrote
        found = (Finding("fail", f"this check failed: {type(error).__name__}: {error}"),)
    return [_completed(each, check) for each in found]


def _completed(finding: Finding, check: Check) -> Finding:
    """Return a finding with the name of its check and a cure, where it has none."""
    is_bad = finding.status in ("warn", "fail")
    cure = finding.cure or (check.fix if is_bad else "")
    return replace(finding, name=finding.name or check.name, cure=cure)


def _redactor(machine: Machine) -> Redactor:
    try:
        servers = dict(machine.servers)
    except UsageError:
        servers = {}
    return Redactor(secrets_in({**machine.environ, **machine.env}, servers))
