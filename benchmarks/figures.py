"""Medians, ratios and margins of error of measurements. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, stdev
from typing import Any

from benchmarks.rows import OFFICIAL, OURS, ROWS, TYPESCRIPT, Row

LEAST_MARGIN = 0.08
"""Two runs on one machine differ by this much even if the rounds of each agree."""
STUDENT_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for 95 %, by the number of rounds minus one."""
MEDIAN_COST = 1.25
"""Standard error of a median relative to that of a mean, for normal distributions."""


@dataclass(slots=True)
class Measured:
    """All rounds of one row."""

    key: str
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """The figure of each round in seconds or bytes, by contestant or by variant of ours."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Why a contestant has no figure."""
    peaks: dict[str, int] = field(default_factory=dict[str, int])
    """Peak memory in bytes, by contestant."""
    date: str = ""
    """When the row was measured. A page may show rows of several runs."""

    @property
    def row(self) -> Row:
        """The row that was measured."""
        return ROWS[self.key]

    def median(self, name: str) -> float | None:
        """Return the median figure of a contestant, or None."""
        found = self.values.get(name)
        return median(found) if found else None


@dataclass(slots=True)
class Run:
    """All measurements of one run, and the machine."""

    machine: dict[str, str]
    rows: list[Measured] = field(default_factory=list[Measured])


@dataclass(frozen=True, slots=True)
class Ratio:
    """One cost divided by another."""

    value: float
    margin: float | None
    """Relative margin of error, for 95 % confidence. None for a single round."""

    def __str__(self) -> str:
        digits = 3 if self.value < 0.1 else 2  # noqa: PLR2004 - two significant digits
        return f"{self.value:.{digits}f}{self._known}"

    @property
    def _known(self) -> str:
        if self.margin is None:
            return ""
        return f" ±{self.margin * 100:.0f}%" if self.margin < 1 else " ±100% or more"


def figure_of(row: Row, report: Mapping[str, Any]) -> float:
    """Return the figure of a report: seconds per item, or bytes per session."""
    value = float(report[row.figure])
    return value / report["items"] if row.figure in ("cpu", "wall") else value


def ratio(measured: Measured, name: str, to: str = OFFICIAL) -> Ratio | None:
    """Return the cost of `name` divided by that of `to`: the median over all rounds.

    Ratios are computed per round, because contestants alternate: a slow phase of the machine
    affects both.
    """
    ours, theirs = measured.values.get(name), measured.values.get(to)
    # Memory that shrinks or is too small to measure has no ratio.
    if not ours or not theirs or min(*ours, *theirs) <= 0:
        return None
    rounds = [our / their for our, their in zip(ours, theirs, strict=False)]
    return Ratio(median(rounds), _margin(rounds))


def verdict(measured: Measured) -> str:
    """Return whether the target is met, and whether the TypeScript SDK is faster."""
    against, target = ratio(measured, OURS), measured.row.target
    parts: list[str] = []
    if target is not None and against is not None:
        parts.append("met" if against.value <= target else "missed")
    ours, theirs = measured.median(OURS), measured.median(TYPESCRIPT)
    if ours is not None and theirs is not None and ours > theirs:
        parts.append("behind TypeScript")
    return ", ".join(parts)


def _margin(rounds: Sequence[float]) -> float | None:
    """Return the relative margin of error of the median.

    Computed in logarithms, so that a factor of two counts the same up and down.
    """
    if len(rounds) < 2:  # noqa: PLR2004 - a spread needs two
        return None
    student_t = STUDENT_T[min(len(rounds) - 1, len(STUDENT_T)) - 1]
    spread = stdev(map(math.log, rounds)) / math.sqrt(len(rounds))
    return max(LEAST_MARGIN, math.expm1(student_t * MEDIAN_COST * spread))
