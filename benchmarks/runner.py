"""Measures rows. The contestants alternate, each time in a new process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.entrants import Entrant, run_order, run_statement
from benchmarks.figures import Measured, figure_of
from benchmarks.rows import OURS, Row

__all__ = ["measure"]

Log = Callable[[str], None]


def measure(
    rows: Iterable[Row],
    entrants: Mapping[str, Entrant],
    program: Path,
    log: Log,
    rounds: int | None = None,
) -> list[Measured]:
    """Measure every row in order. `rounds` overrides how often each row is repeated."""
    found: list[Measured] = []
    for row in rows:
        log(row.title)
        found.append(_measure(row, entrants, program, rounds or row.rounds))
    return found


def _measure(row: Row, entrants: Mapping[str, Entrant], program: Path, rounds: int) -> Measured:
    measured = Measured(row.key)
    for _ in range(rounds):
        for name, entrant, order in _turns(row, entrants, program):
            if entrant.absent:
                measured.notes[name] = entrant.absent
            elif name not in measured.notes:
                _take(measured, name, entrant, order)
    return measured


def _turns(
    row: Row, entrants: Mapping[str, Entrant], program: Path
) -> Iterable[tuple[str, Entrant, dict[str, Any]]]:
    """Return what one round runs: label, contestant and order."""
    order = {"program": str(program), **row.order}
    if row.ways:
        return [(way, entrants[OURS], {**order, **more}) for way, more in row.ways.items()]
    return [(name, entrants[name], order) for name in row.who]


def _take(measured: Measured, name: str, entrant: Entrant, order: Mapping[str, Any]) -> None:
    values = measured.values.setdefault(name, [])
    if order.get("shape") == "import":
        loaded, bare = entrant.importing
        values.append(run_statement(loaded) - run_statement(bare))
        return
    report = run_order(entrant, order)
    if report["note"]:
        # A contestant that failed once is not run again: each attempt could take minutes.
        measured.notes[name] = report["note"]
        measured.values.pop(name)
        return
    values.append(figure_of(measured.row, report))
    measured.peaks[name] = max(measured.peaks.get(name, 0), report["peak"])
