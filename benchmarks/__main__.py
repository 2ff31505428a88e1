"""Measures steersman, the official SDKs and a bare loop, and prints a table.

`python -m benchmarks --rows partial,hook` measures some rows. `--publish` also updates the page in
`docs/`, with its JSON file and plots. `--compare FILE` compares the run with an earlier one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.entrants import entrants
from benchmarks.figures import Run
from benchmarks.page import publish
from benchmarks.plots import draw
from benchmarks.records import differences, load_run, save_run
from benchmarks.rows import chosen
from benchmarks.runner import measure
from benchmarks.stand_in.build import MADE, is_compiled, stand_in
from benchmarks.table import table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and save. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="", help="keys of rows, with commas; default: all")
    parser.add_argument("--rounds", type=int, help="how often to repeat each row")
    parser.add_argument("--publish", action="store_true", help="write docs/performance")
    parser.add_argument("--compare", type=Path, help="a saved run to compare with")
    asked = parser.parse_args(arguments)

    # Load it first: publishing this run may overwrite the file.
    earlier = load_run(asked.compare) if asked.compare else None
    run = measured(asked.rows, asked.rounds)
    # Save it first: it took minutes.
    save_run(run, MADE / "latest.json")
    print(table(run.rows))
    draw(run.rows, MADE)
    if asked.publish:
        publish(run)
    return compare(earlier, run) if earlier else 0


def measured(keys: str, rounds: int | None) -> Run:
    """Measure the rows that `keys` names."""
    rows, started = chosen(keys), time.monotonic()
    program = stand_in()
    contestants = entrants()
    made = "compiled C" if is_compiled(program) else "Python"
    run = Run(machine.describe(contestants, made))
    run.machine["load before"] = machine.load()

    def log(title: str) -> None:
        sys.stderr.write(f"{time.monotonic() - started:5.0f} s  {title}\n")

    run.rows = measure(rows, contestants, program, log, rounds)
    for each in run.rows:
        each.date = run.machine["date"]
    run.machine["load after"] = machine.load()
    run.machine["took"] = f"{time.monotonic() - started:.0f} s"
    return run


def compare(earlier: Run, later: Run) -> int:
    """Print the change of each ratio. Return 1 if one changed by more than its margin, else 0."""
    found = list(differences(earlier, later))
    within = sum(each.is_within for each in found)
    print("\n".join([*map(str, found), f"{within} of {len(found)} rows are within their margins"]))
    return 0 if within == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
