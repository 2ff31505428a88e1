"""Seeds that have found something in durable work, and a few others."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Generator

import pytest

from tests.simulation.durable.invariants import broken
from tests.simulation.durable.plans import draw
from tests.simulation.durable.playing import play


@pytest.fixture(autouse=True)
def _buried() -> Generator[None]:
    """Collect what killed hosts have left: it is never finished, which is what a kill means."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()
    sys.unraisablehook = before


FOUND = {
    7: "a turn that was left a second time before its answer was `completed` without text",
    30: "the same",
    14: "a SIGTERM interrupted a turn that a kill would have kept",
    18: "the same, while the model thinks",
    9: "a tool that an answer had just begun was killed by the leave, and asked about again",
    51: "the same",
    206: "the tool of a call that the next CLI had asked about again was killed by the leave",
    138: "a host without its lease stored its ask when the store came back",
    418: "an answer that was being used while the session was left stayed used",
    828: "the same",
}


@pytest.mark.parametrize("seed", FOUND)
def test_a_seed_that_found_something_finds_nothing_any_more(seed: int) -> None:
    out = play(draw(seed))

    wrong = broken(out)

    assert not wrong, out.story(wrong)


def test_the_simulation_comes_to_every_way_of_leaving() -> None:
    outs = [play(draw(seed)) for seed in range(60)]

    whats = {each.what for out in outs for each in out.log}
    assert {"is killed", "gets SIGTERM", "loses its store", "leaves by", "takes up"} <= whats
    assert {"parked", "completed"} <= {outcome for out in outs for _, outcome, _ in out.results}
    assert any(out.plan.is_exact for out in outs)
    assert any(not out.plan.is_exact for out in outs)
