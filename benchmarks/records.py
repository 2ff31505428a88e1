"""A run as a JSON file, and back; two runs side by side."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.figures import Measured, Run, ratio
from benchmarks.rows import OURS

__all__ = ["differences", "load_run", "save_run"]


def save_run(run: Run, path: Path) -> None:
    """Write every round of every row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def load_run(path: Path) -> Run:
    """What `save_run` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def differences(first: Run, second: Run) -> Iterable[tuple[str, float, float]]:
    """For each row of both: its title, how far our ratio moved, and how far it may have."""
    earlier = {each.key: each for each in first.rows}
    for later in second.rows:
        before = _ratio(earlier.get(later.key))
        after = _ratio(later)
        if before is not None and after is not None:
            (old, old_margin), (new, new_margin) = before, after
            yield later.row.title, new / old - 1, old_margin + new_margin


def _ratio(measured: Measured | None) -> tuple[float, float] | None:
    found = None if measured is None else ratio(measured, OURS)
    return None if found is None or found.margin is None else (found.value, found.margin)
