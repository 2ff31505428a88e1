"""Updates the numbers of the page in `docs/` that shows the latest run. Its prose stays."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.figures import Run
from benchmarks.plots import draw
from benchmarks.records import load_run, save_run
from benchmarks.rows import ROWS
from benchmarks.table import table
from benchmarks.targets import targets

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
PICTURES = DOCS / "performance"
NUMBERS = re.compile(r"(<!-- numbers -->\n).*?(<!-- /numbers -->)", re.DOTALL)


def publish(run: Run) -> None:
    """Write page, plots and JSON file. Rows that this run did not measure are kept."""
    kept = PICTURES / "latest.json"
    if kept.exists():
        run = together(load_run(kept), run)
    save_run(run, kept)
    draw(run.rows, PICTURES)
    PAGE.write_text(with_numbers(PAGE.read_text(encoding="utf-8"), run), encoding="utf-8")


def together(earlier: Run, later: Run) -> Run:
    """Return the rows of both runs in the order of the table, the later one of each."""
    rows = {each.key: each for each in (*earlier.rows, *later.rows)}
    return Run(later.machine, [rows[key] for key in ROWS if key in rows])


def with_numbers(page: str, run: Run) -> str:
    """Return the page with the numbers of this run between its markers."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in run.machine.items())
    parts = [
        table(run.rows),
        f"### Targets\n\n{targets(run.rows)}",
        f"### Measured on\n\n| | |\n|---|---|\n{facts}\n",
    ]
    numbers = "\n" + "\n".join(parts) + "\n"
    return NUMBERS.sub(lambda found: found[1] + numbers + found[2], page)
