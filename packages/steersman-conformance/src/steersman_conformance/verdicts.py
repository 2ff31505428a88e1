"""What an observation means, given what was expected and what was recorded before. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from steersman._json import Json, JsonObject
from steersman_conformance.checks import Check, Kind

__all__ = ["NEVER", "Baseline", "Finding", "Verdict", "is_good", "judge"]

NEVER = object()
"""Stands for an observation that was not made, or not recorded."""


class Verdict(StrEnum):
    """What became of a check."""

    HOLDS = "holds"
    STANDS = "worked around"
    """The fault is still there."""
    ABSENT = "absent, handled"
    BROKEN = "BROKEN"
    CHANGED = "CHANGED"
    """Not what was recorded, whether or not we can live with it."""
    FIXED = "FIXED"
    """The fault is gone: the workaround can go too."""


GOOD = frozenset({Verdict.HOLDS, Verdict.STANDS, Verdict.ABSENT})


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was observed of one version, by the names of the checks."""

    version: str
    observed: JsonObject


@dataclass(frozen=True, slots=True)
class Finding:
    """A check, what it saw, and what that means."""

    check: Check[Any]
    observed: Json
    recorded: Json
    """`NEVER` if nothing was."""
    verdict: Verdict


def judge(check: Check[Any], observed: Json, baseline: Baseline | None, *, version: str) -> Finding:
    """Compare an observation with the expectation and with the record.

    The record of another version tells what has changed since; only that of this very version
    can excuse a fault for not being there.
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
    """Whether all that we depend on holds and nothing has changed."""
    return all(finding.verdict in GOOD for finding in findings)
