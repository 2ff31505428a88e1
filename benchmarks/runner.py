"""Measures rows. The contestants alternate, each time in a new process.

Rows with the same order are figures of the same measurements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.entrants import Entrant, run_order, run_statement
from benchmarks.figures import Measured, figure_of
from benchmarks.rows import OURS, Row
from benchmarks.stock import run_stock

Log = Callable[[str], None]
Reports = dict[tuple[str, str, int], dict[str, Any]]
"""The reports so far, by order, contestant and round."""


def measure(
    rows: Iterable[Row],
    entrants: Mapping[str, Entrant],
    program: Path,
    log: Log,
    rounds: int | None = None,
) -> list[Measured]:
    """Measure every row in order. `rounds` overrides how often each row is repeated."""
    found: list[Measured] = []
    reports: Reports = {}
    for row in rows:
        log(row.title)
        found.append(_measure(row, entrants, program, rounds or row.rounds, reports))
    return found


def _measure(
    row: Row, entrants: Mapping[str, Entrant], program: Path, rounds: int, reports: Reports
) -> Measured:
    measured = Measured(row.key)
    for number in range(rounds):
        for name, entrant, order in _turns(row, entrants, program):
            if entrant.absent:
                measured.notes[name] = entrant.absent
            elif name not in measured.notes:
                key = (json.dumps(order, sort_keys=True), name, number)
                if key not in reports:
                    reports[key] = _run(entrant, order)
                _take(measured, name, reports[key])
    return measured


def _turns(
    row: Row, entrants: Mapping[str, Entrant], program: Path
) -> Iterable[tuple[str, Entrant, dict[str, Any]]]:
    """Return the runs of one round: label, contestant and order."""
    order = {"program": str(program), **row.order}
    if row.ways:
        return [(way, entrants[OURS], {**order, **more}) for way, more in row.ways.items()]
    return [(name, entrants[name], order) for name in row.who]


def _run(entrant: Entrant, order: Mapping[str, Any]) -> dict[str, Any]:
    """Run one order in a new process. Return its report."""
    if order.get("shape") == "import":
        loaded, bare = entrant.importing
        used = run_statement(loaded) - run_statement(bare)
        return {"cpu": used, "items": 1, "note": "", "peak": 0}
    if order.get("shape") in ("stock", "one-shot"):
        return run_stock(entrant, order)
    return run_order(entrant, order)


def _take(measured: Measured, name: str, report: Mapping[str, Any]) -> None:
    if report["note"]:
        # A contestant that failed once is not run again: each attempt could take minutes.
        measured.notes[name] = report["note"]
        measured.values.pop(name, None)
        return
    measured.values.setdefault(name, []).append(figure_of(measured.row, report))
    if report["peak"]:
        measured.peaks[name] = max(measured.peaks.get(name, 0), report["peak"])
