"""Numbers out of measurements: medians, ratios, and how far each can be trusted. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.rows import OFFICIAL, OURS, ROWS, TYPESCRIPT, Row

__all__ = ["Measured", "Ratio", "Run", "figure_of", "ratio", "verdict"]

LEAST_MARGIN = 0.08
"""Two runs on one machine differ by this much even where the rounds of each agree."""
FEWEST_ROUNDS = 3
DRAWS = 400
TRUSTED = 0.95


@dataclass(slots=True)
class Measured:
    """All rounds of one row."""

    key: str
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """By contestant, or by our own reading: the figure of each round, in seconds or bytes."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Why a contestant has no figure."""
    peaks: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes of memory at most."""
    date: str = ""
    """When it was measured: a page may show rows of more than one run."""

    @property
    def row(self) -> Row:
        """What was measured."""
        return ROWS[self.key]

    def median(self, name: str) -> float | None:
        """The contestant's figure."""
        found = self.values.get(name)
        return median(found) if found else None


@dataclass(slots=True)
class Run:
    """Everything that one run has measured, and where."""

    machine: dict[str, str]
    rows: list[Measured] = field(default_factory=list[Measured])


@dataclass(frozen=True, slots=True)
class Ratio:
    """One cost over another."""

    value: float
    margin: float | None
    """Relative: a second run stays within it. None where there were too few rounds to know."""

    def __str__(self) -> str:
        digits = 3 if self.value < 0.1 else 2  # noqa: PLR2004 - two digits that mean something
        known = "" if self.margin is None else f" ±{self.margin * 100:.0f}%"
        return f"{self.value:.{digits}f}{known}"


def figure_of(row: Row, report: Mapping[str, Any]) -> float:
    """What a report says of its row: seconds for each item, or bytes for each session."""
    value = float(report[row.figure])
    return value if row.figure in ("held", "beside") else value / report["items"]


def ratio(measured: Measured, name: str, to: str = OFFICIAL) -> Ratio | None:
    """The cost of `name` over that of `to`, by the medians of their rounds."""
    ours, theirs = measured.values.get(name), measured.values.get(to)
    # Memory that shrinks, or is too little to be seen, has no ratio.
    if not ours or not theirs or min(*ours, *theirs) <= 0:
        return None
    return Ratio(median(ours) / median(theirs), _margin(ours, theirs))


def verdict(measured: Measured) -> str:
    """Whether the target is met, and whether we are behind the TypeScript SDK."""
    against, target = ratio(measured, OURS), measured.row.target
    words: list[str] = []
    if target is not None and against is not None:
        words.append("met" if against.value <= target else "missed")
    ours, theirs = measured.median(OURS), measured.median(TYPESCRIPT)
    if ours is not None and theirs is not None and ours > theirs:
        words.append("behind TypeScript")
    return ", ".join(words)


def _margin(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """How far the ratio moves when the rounds are drawn anew from those we saw."""
    if min(len(ours), len(theirs)) < FEWEST_ROUNDS:
        return None
    chance = random.Random(0)  # noqa: S311 - the same margin for the same rounds
    middle = median(ours) / median(theirs)
    moved = sorted(
        abs(
            median(chance.choices(ours, k=len(ours)))
            / median(chance.choices(theirs, k=len(theirs)))
            / middle
            - 1
        )
        for _ in range(DRAWS)
    )
    return max(LEAST_MARGIN, moved[int(TRUSTED * DRAWS)])
