from __future__ import annotations

import itertools

import pytest

from steersman.journal import Move, Phase, step
from steersman.journal.snapshot import TABLE

ENDS = {Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}


def reachable() -> set[Phase]:
    found = {Phase.IDLE}
    while True:
        more = {step(phase, move) for phase in found for move in Move}
        if more <= found:
            return found
        found |= more


def test_every_phase_stands_in_the_table_and_can_be_reached() -> None:
    assert set(TABLE) == set(Phase)
    assert reachable() == set(Phase)


@pytest.mark.parametrize(("phase", "move"), [*itertools.product(Phase, Move)])
def test_a_step_leads_where_the_table_says_or_nowhere(phase: Phase, move: Move) -> None:
    assert step(phase, move) is TABLE[phase].get(move, phase)


@pytest.mark.parametrize("phase", [*Phase])
def test_ends_are_ends(phase: Phase) -> None:
    assert phase.is_over == (phase in ENDS)
    assert not phase.is_over or {step(phase, move) for move in Move} == {phase}


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in ENDS])
@pytest.mark.parametrize(
    ("move", "end"),
    [
        (Move.COMPLETE, Phase.COMPLETED),
        (Move.FAIL, Phase.FAILED),
        (Move.CANCEL, Phase.CANCELLED),
    ],
)
def test_a_session_can_end_from_anywhere(phase: Phase, move: Move, end: Phase) -> None:
    assert step(phase, move) is end


def test_one_life_goes_through_the_phases_in_order() -> None:
    moves = [
        Move.LAUNCH,
        Move.GREET,
        Move.BEGIN,
        Move.PAUSE,
        Move.RESUME,
        Move.REST,
        Move.COMPLETE,
    ]

    phases = list(itertools.accumulate(moves, step, initial=Phase.IDLE))

    assert [phase.value for phase in phases] == [
        "idle",
        "starting",
        "idle",
        "running",
        "paused",
        "running",
        "idle",
        "completed",
    ]


def test_a_turn_cannot_begin_before_the_cli_has_answered() -> None:
    assert step(Phase.STARTING, Move.BEGIN) is Phase.STARTING
