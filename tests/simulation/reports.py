"""Reports of a run: a full one for a failure, and a digest for a comparison of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.journal import Entry
from tests.simulation.playing import Run


def report(run: Run, wrong: Sequence[str]) -> str:
    """What is wrong, in which scenario, and how to see it again."""
    struck = ", ".join(map(str, run.transport.happened)) or "none"
    how = " revived" if run.scenario.revives else ""
    return "\n".join(
        (
            *(f"BROKEN {each}" for each in wrong),
            str(run.scenario),
            f"  faults that struck: {struck}",
            f"  again: python -m tests.simulation {run.scenario.seed}{how}",
        )
    )


def story(run: Run, width: int = 150) -> str:
    """The journal, one line for each entry."""
    return "\n".join(
        f"{each.seq:4} {each.kind.value:11} {_told(each)[:width]}"
        if isinstance(each, Entry)
        else f"     {each}"
        for each in run.entries
    )


def digest(run: Run) -> list[Any]:
    """All of a run but its ids and times."""
    return [
        [each.kind if isinstance(each, Entry) else each for each in run.entries],
        {number: (result.outcome, result.text) for number, result in run.results.items()},
        run.transport.happened,
        [*run.house.ran, *run.house.noted],
        run.took,
        type(run.failure),
        type(run.startup_error),
    ]


def _told(entry: Entry) -> str:
    return str(dict(entry.details)) if entry.details else entry.line.decode("utf-8", "replace")
