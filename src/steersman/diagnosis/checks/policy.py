"""Does the policy stop what its rules seem to stop."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, ok, skipped, warned
from steersman.permissions.policy import WALLS


async def _run(machine: Machine) -> Iterable[Finding]:
    policy = machine.options.policy
    if policy is None:
        return skipped("there is no policy")
    found = policy.check()
    if not found:
        return ok(f"{len(policy.rules)} rules")
    return [each for text in found for each in warned(text.removesuffix(f"; {WALLS}"), WALLS)]


POLICY = Check("policy", _run)
