"""Compares an observation with the expectation and the baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from steersman._json import Json, JsonObject
from steersman_conformance.checks import Check, Kind

__all__ = ["NEVER", "Baseline", "Finding", "Verdict", "is_good", "judge"]

NEVER = object()
"""Marks an observation that was not recorded."""


class Verdict(StrEnum):
    """The outcome of a check."""

    HOLDS = "holds"
    STANDS = "worked around"
    """The CLI still has the fault."""
    ABSENT = "absent, handled"
    BROKEN = "BROKEN"
    CHANGED = "CHANGED"
    """The observation differs from the baseline."""
    FIXED = "FIXED"
    """The CLI no longer has the fault, so the workaround can be removed."""


GOOD = frozenset({Verdict.HOLDS, Verdict.STANDS, Verdict.ABSENT})


@dataclass(frozen=True, slots=True)
class Baseline:
    """The observations of one version, by check name."""

    version: str
    observed: JsonObject


@dataclass(frozen=True, slots=True)
class Finding:
    """A check, its observation, and the verdict."""

    check: Check[Any]
    observed: Json
    recorded: Json
    """The value in the baseline; `NEVER` if there is none."""
    verdict: Verdict


def judge(check: Check[Any], observed: Json, baseline: Baseline | None, *, version: str) -> Finding:
    """Compare an observation with the expectation and with the baseline.

    The baseline of another version shows what has changed since then. Only the baseline of the
    same version can make an unexpected observation of a feature or fault acceptable.
    """
    recorded = NEVER if baseline is None else baseline.observed.get(check.name, NEVER)
    is_own = baseline is not None and baseline.version == version
    verdict = _verdict(check, observed, recorded, is_own=is_own)
    return Finding(check, observed, recorded, verdict)


def _verdict(check: Check[Any], observed: Json, recorded: Json, *, is_own: bool) -> Verdict:
    is_as_recorded = observed == recorded
    if observed == check.expected:
        if recorded is NEVER or is_as_recorded or not is_own:
            return Verdict.STANDS if check.kind is Kind.CANARY else Verdict.HOLDS
        return Verdict.CHANGED
    match check.kind:
        case Kind.MUST:
            return Verdict.BROKEN
        case Kind.CANARY:
            return Verdict.ABSENT if is_as_recorded and is_own else Verdict.FIXED
        case Kind.FEATURE:
            if observed != check.absent:
                return Verdict.ABSENT if is_as_recorded and is_own else Verdict.BROKEN
            return Verdict.ABSENT if is_as_recorded or recorded is NEVER else Verdict.CHANGED


def is_good(findings: Iterable[Finding]) -> bool:
    """Return whether everything that steersman depends on holds and nothing has changed."""
    return all(finding.verdict in GOOD for finding in findings)
