"""Measures `steersman.compat` beside the official package: one program, two packages.

`python -m benchmarks.compat` prints a line per row: both medians, their ratio and its bar. The
packages alternate, each time in a new process. `--rows partial,hook` measures some rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from benchmarks.entrants import pythons
from benchmarks.figures import Measured, ratio
from benchmarks.rows import COMPAT, OFFICIAL, ROWS, Row
from benchmarks.runner import measure
from benchmarks.stand_in.build import stand_in

BARS: Mapping[str, float] = {
    "partial": 0.40,
    "1kb": 0.80,
    "800kb": 1.0,
    "permission": 0.85,
    "hook": 0.85,
    "tool": 0.06,
    "permissions": 0.40,
    "import": 0.20,
}
"""The highest cost of compat relative to the official package, by the key of a row."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 1 if a bar is missed by more than the margin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(BARS), help="keys of rows, with commas")
    parser.add_argument("--rounds", type=int, help="how often to repeat each row")
    asked = parser.parse_args(arguments)
    rows = [beside(ROWS[key]) for key in asked.rows.split(",")]
    found = measure(rows, pythons(), stand_in(), lambda _title: None, asked.rounds)
    for each in found:
        sys.stdout.write(line(each) + "\n")
    return int(any(is_missed(each) for each in found))


def beside(row: Row) -> Row:
    """Return a row for these two contestants."""
    return Row(row.key, row.title, row.order, row.figure, who=(OFFICIAL, COMPAT), rounds=row.rounds)


def line(measured: Measured) -> str:
    """Return the figures, in one line."""
    factor, unit = measured.row.scale
    found = ratio(measured, COMPAT)
    if found is None:
        return f"{measured.row.title}: {measured.notes}"
    theirs, ours = ((measured.median(each) or 0) * factor for each in (OFFICIAL, COMPAT))
    figures = f"{ours:.1f} {unit} of {theirs:.1f} {unit}"
    bar = BARS[measured.key]
    word = (
        "met" if found.value <= bar else "missed" + " within the margin" * (not is_missed(measured))
    )
    return f"{measured.row.title}: {found} ({figures}), bar {bar:g}: {word}"


def is_missed(measured: Measured) -> bool:
    """Return whether the ratio is above its bar, also without its margin."""
    found = ratio(measured, COMPAT)
    return found is None or found.value * (1 - (found.margin or 0)) > BARS[measured.key]


if __name__ == "__main__":
    sys.exit(main())
