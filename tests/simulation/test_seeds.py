"""Hundreds of seeds: random sessions, random faults, and what must be true of all of them."""

from __future__ import annotations

import gc
import os

import pytest

from steersman.testing.scripted.conversation import CONTINUE
from tests.simulation.invariants import INVARIANTS, broken
from tests.simulation.playing import play
from tests.simulation.reports import digest, report
from tests.simulation.scenarios import draw, draw_revived

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
SEEDS = int(os.environ.get("STEERSMAN_SEEDS", "20000" if IS_SOAK else "300"))
"""`make soak` plays 20,000 of them, and half as many that revive; `STEERSMAN_SEEDS` any number."""
ENOUGH = 150
CHUNK = 20
"""Seeds in one test: few enough to be spread over processes, enough to be cheap."""

# Seeds that found something, and what it was. A change of the generator changes what they mean, so
# each of them is also spelled out in `test_regressions`, or in the tests of its part.
FOUND = {
    25: "a request that was taken back before its handler's first step stayed open",
    20: "the pieces of a turn without a result were not its text",
    322: "a tool call that came twice ran twice",
    1006: "a CLI that was gone could be stopped, and then was never told gone",
    1035: "a question that came twice left a task behind",
    1112: "a CLI that ended while it was stopped was never told gone",
    2902: "the same, with a request taken back",
    5487: "a plan with two kills left a timer behind",
    16992: "a watchdog waited for less time than can move the clock, for ever",
}
FOUND_REVIVED = {
    3942: "the text of a turn whose message was garbled was not what was streamed",
    5009: "a turn that had begun and whose result was lost was called cancelled",
}


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_whatever_goes_wrong_the_session_keeps_its_promises(first: int) -> None:
    runs = [play(draw(seed)) for seed in range(first, min(first + CHUNK, SEEDS))]
    # Objects without a reference issue their warnings when they are collected.
    gc.collect()

    failures = [report(run, wrong) for run in runs if (wrong := broken(run))]

    assert not failures, "\n\n".join(failures)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, SEEDS // 2, CHUNK))
def test_whatever_goes_wrong_a_session_that_revives_keeps_them_too(first: int) -> None:
    runs = [play(draw_revived(seed)) for seed in range(first, min(first + CHUNK, SEEDS // 2))]
    gc.collect()

    failures = [report(run, wrong) for run in runs if (wrong := broken(run))]

    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_found_something_finds_nothing_any_more(seed: int) -> None:
    run = play(draw(seed))

    wrong = broken(run)

    assert not wrong, report(run, wrong)


@pytest.mark.parametrize("seed", FOUND_REVIVED)
def test_a_seed_that_found_something_in_a_revival_finds_nothing_any_more(seed: int) -> None:
    run = play(draw_revived(seed))

    wrong = broken(run)

    assert not wrong, report(run, wrong)


@pytest.mark.parametrize("seed", range(min(30, SEEDS)))
def test_a_seed_plays_the_same_every_time(seed: int) -> None:
    assert digest(play(draw(seed))) == digest(play(draw(seed)))


@pytest.mark.skipif(SEEDS < ENOUGH, reason="few seeds do not come to everything")
def test_the_simulation_comes_to_everything_that_can_happen() -> None:
    """A simulation that sees nothing proves nothing."""
    runs = [play(draw(seed)) for seed in range(120)]

    outcomes = {result.outcome for run in runs for result in run.results.values()}
    assert outcomes == {"completed", "failed", "interrupted", "cancelled"}
    assert len({type(fault) for run in runs for fault in run.transport.happened}) >= 14
    assert any(run.startup_error for run in runs)
    assert any(run.has_lagged for run in runs)
    assert any(run.house.ran for run in runs)
    assert any(run.house.denied for run in runs)
    assert {run.scenario.style for run in runs} == {"session", "query", "run"}


@pytest.mark.skipif(SEEDS < ENOUGH, reason="few seeds do not come to everything")
def test_the_simulation_comes_to_every_way_of_going_on() -> None:
    runs = [play(draw_revived(seed)) for seed in range(150)]

    revived = [run for run in runs if run.session.restarts]
    outcomes = {result.outcome for run in revived for result in run.results.values()}
    assert outcomes == {"completed", "failed", "interrupted", "cancelled"}
    assert len(revived) >= 30
    assert any(run.session.restarts > 1 for run in runs)
    asked = [request.last_text for run in revived for request in run.cli.asked]
    assert sum(CONTINUE in each for each in asked) >= 20


def test_the_invariants_have_names_that_say_what_they_hold() -> None:
    assert len({check.__name__ for check in INVARIANTS}) == len(INVARIANTS) >= 15
