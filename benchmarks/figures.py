"""Numbers out of measurements: medians, ratios, and how far each can be trusted. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, stdev
from typing import Any

from benchmarks.rows import OFFICIAL, OURS, ROWS, TYPESCRIPT, Row

__all__ = ["Measured", "Ratio", "Run", "figure_of", "ratio", "verdict"]

LEAST_MARGIN = 0.08
"""Two runs on one machine differ by this much even where the rounds of each agree."""
SURENESS = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t, 95 %, by the rounds beyond the first: few rounds know little of their own spread."""
MEDIAN_COST = 1.25
"""How much farther a median strays than a mean, where nothing is out of the ordinary."""


@dataclass(slots=True)
class Measured:
    """All rounds of one row."""

    key: str
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """By contestant, or by our own way: the figure of each round, in seconds or bytes."""
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
    """Relative: how far the truth may be, with 95 % sureness. None for a single round."""

    def __str__(self) -> str:
        digits = 3 if self.value < 0.1 else 2  # noqa: PLR2004 - two digits that mean something
        return f"{self.value:.{digits}f}{self._known}"

    @property
    def _known(self) -> str:
        if self.margin is None:
            return ""
        return f" ±{self.margin * 100:.0f}%" if self.margin < 1 else " ±100% or more"


def figure_of(row: Row, report: Mapping[str, Any]) -> float:
    """What a report says of its row: seconds for each item, or bytes for each session."""
    value = float(report[row.figure])
    return value if row.figure in ("held", "beside") else value / report["items"]


def ratio(measured: Measured, name: str, to: str = OFFICIAL) -> Ratio | None:
    """The cost of `name` over that of `to`: the median of what it is in each round.

    Round by round, because the contestants alternate: what slows the machine down for a while slows
    both.
    """
    ours, theirs = measured.values.get(name), measured.values.get(to)
    # Memory that shrinks, or is too little to be seen, has no ratio.
    if not ours or not theirs or min(*ours, *theirs) <= 0:
        return None
    rounds = [our / their for our, their in zip(ours, theirs, strict=False)]
    return Ratio(median(rounds), _margin(rounds))


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


def _margin(rounds: Sequence[float]) -> float | None:
    """How far their median may be from the truth.

    In logarithms, because twice as much and half as much are equally far away.
    """
    if len(rounds) < 2:  # noqa: PLR2004 - a spread needs two
        return None
    sureness = SURENESS[min(len(rounds) - 1, len(SURENESS)) - 1]
    spread = stdev(map(math.log, rounds)) / math.sqrt(len(rounds))
    return max(LEAST_MARGIN, math.expm1(sureness * MEDIAN_COST * spread))
