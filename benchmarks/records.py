"""Saves and loads runs as JSON files, and compares two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.figures import Measured, Run, ratio
from benchmarks.rows import OURS


def save_run(run: Run, path: Path) -> None:
    """Write every round of every row to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def load_run(path: Path) -> Run:
    """Read a run that `save_run` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of our ratio in one row between two runs."""

    title: str
    moved: float
    """Relative change: 0.1 is 10 % more."""
    allowed: float
    """The combined margins of both runs. The same factor applies up and down."""

    @property
    def is_within(self) -> bool:
        """Whether the change is within the margins."""
        return 1 / (1 + self.allowed) <= 1 + self.moved <= 1 + self.allowed

    def __str__(self) -> str:
        place = "within" if self.is_within else "OUTSIDE"
        return f"{self.title:<40} {self.moved:+7.1%}  {place} the margin of {self.allowed:.0%}"


def differences(first: Run, second: Run) -> Iterable[Difference]:
    """Yield the difference of each row that has a margin in both runs."""
    earlier = {each.key: each for each in first.rows}
    for later in second.rows:
        before = _ratio(earlier.get(later.key))
        after = _ratio(later)
        if before is not None and after is not None:
            (old, old_margin), (new, new_margin) = before, after
            allowed = (1 + old_margin) * (1 + new_margin) - 1
            yield Difference(later.row.title, new / old - 1, allowed)


def _ratio(measured: Measured | None) -> tuple[float, float] | None:
    found = None if measured is None else ratio(measured, OURS)
    return None if found is None or found.margin is None else (found.value, found.margin)
