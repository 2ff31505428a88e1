"""The table of docs/durable-model.md, cell by cell, against what sessions and tables do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.durable.cells import EVENTS, STATES, look_at
from tests.simulation.durable.invariants import INVARIANTS

PAGE = (Path(__file__).parents[3] / "docs" / "durable-model.md").read_text()
NOTHING = "\N{EN DASH}"
EXACT, TOLD = "exact: ", "told: "


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, with its head, without the line of dashes."""
    below = PAGE.partition(f"## {heading}\n")[2].splitlines()
    last = next((n for n, each in enumerate(below) if each.startswith("## ")), len(below))
    lines = [each for each in below[:last] if each.startswith("|")]
    return [
        [cell.strip() for cell in each.strip("|").split("|")] for each in lines if "---" not in each
    ]


HEAD, *TABLE = rows_of("The table")


def cells() -> Iterator[tuple[str, str, bool, str]]:
    for event, *found in TABLE:
        for state, cell in zip(HEAD[1:], found, strict=True):
            for is_exact in (True, False):
                if cell == NOTHING:
                    continue
                both = cell.split(" · ")
                ours = both[0 if is_exact else -1].removeprefix(EXACT).removeprefix(TOLD)
                yield state, event, is_exact, ours


def test_the_table_has_every_state_and_every_event() -> None:
    assert HEAD[1:] == [*STATES]
    assert [each[0] for each in TABLE] == [*EVENTS]


def test_the_page_lists_each_invariant_that_is_checked() -> None:
    assert [each[0] for each in rows_of("What always holds")][1:] == [*INVARIANTS]


@pytest.mark.parametrize(
    ("state", "event", "is_exact", "rows"),
    list(cells()),
    ids=lambda each: {True: "exact", False: "told"}.get(each, each),
)
@pytest.mark.usefixtures("buried")
def test_each_cell_of_the_table_is_what_happens(
    state: str, event: str, rows: str, *, is_exact: bool
) -> None:
    assert look_at(state, event, is_exact=is_exact) == rows
