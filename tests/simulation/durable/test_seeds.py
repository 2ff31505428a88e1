"""Seeds that have found something in durable work, and as many others as there is time for."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.simulation.durable.invariants import broken
from tests.simulation.durable.plans import Plan, draw, draw_far, draw_wide
from tests.simulation.durable.playing import play

pytestmark = pytest.mark.usefixtures("buried")

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
SEEDS = int(os.environ.get("STEERSMAN_SEEDS", "17000" if IS_SOAK else "80"))
"""Of each kind; `make soak` plays 50,000 in all."""
CHUNK = 20
"""Seeds in one test: few enough to be spread over processes."""

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
    145: "a person was asked again after a kill, and not shown what was answered before",
    964: "a SIGTERM between the row and the line of a `send()` cancelled the turn",
    2569: "the same",
}
FOUND_WIDE = {
    227: "a prompt that the CLI dropped was completed by the result of a turn beside it, and a"
    " turn behind which others stand was continued as if it were the last one",
    317: "the tool of a call that was deferred once more by a restart was killed by the leave",
    638: "a prompt that was sent while its session ended took the lease again, and kept it",
    2048: "the same",
    30110: "asks of a turn that the CLI continued by itself were those of the prompt behind it, and"
    " stayed open when that had ended; its tool was killed by the leave",
    32724: "an ask was stored for a turn that had ended, and stayed open",
    62: "an ask that the model did not come back to stayed open when its turn had completed",
}
FOUND_FAR = {
    28: "a host that was stopped until just before its lease was over settled its turn as failed",
    81: "an ask that came in the moment in which the thread of the inbox would end was lost",
    163: "the same",
    82: "a job of a fleet waited for an ask that the store did not have",
    272: "a job was settled although the end of its turn was not stored",
    50356: "a job whose worker was stopped before its CLI had started failed for good",
    207537: "the ask of a subagent stayed open whose CLI was lost before the turn completed",
    210951: "a job whose worker lost its lease before its CLI was launched failed for good",
    104789: "a job whose worker was drained while its turn was sent failed for good",
    67: "an ask of a subagent that was lost with its host stayed open when the turn had completed",
}

Draw = Callable[[int], Plan]


@pytest.mark.parametrize(
    ("make", "seed"),
    [
        *((draw, seed) for seed in FOUND),
        *((draw_wide, seed) for seed in FOUND_WIDE),
        *((draw_far, seed) for seed in FOUND_FAR),
    ],
)
def test_a_seed_that_found_something_finds_nothing_any_more(make: Draw, seed: int) -> None:
    out = play(make(seed))

    wrong = broken(out)

    assert not wrong, out.story(wrong)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
@pytest.mark.parametrize("make", [draw, draw_wide, draw_far])
def test_whatever_happens_to_hosts_and_people_durable_work_keeps_its_promises(
    make: Draw, first: int
) -> None:
    outs = [play(make(seed)) for seed in range(first, min(first + CHUNK, SEEDS))]

    stories = [out.story(wrong) for out in outs if (wrong := broken(out))]

    assert not stories, "\n".join(stories)


def test_the_simulation_comes_to_every_way_of_leaving() -> None:
    outs = [play(draw_far(seed)) for seed in range(60)]

    whats = {each.what for out in outs for each in out.log}
    assert {"is killed", "gets SIGTERM", "loses its store", "leaves by", "takes up"} <= whats
    assert {"is stopped", "is continued", "is drained", "job settles"} <= whats
    assert {"interrupt", "cancel", "withdraw", "loses its CLI", "another key"} <= whats
    assert {"tool begins", "tool ends", "tool killed", "lets expire"} <= whats
    outcomes = {outcome for out in outs for _, outcome, _ in out.results}
    assert {"parked", "completed", "interrupted", "cancelled"} <= outcomes
    kinds = [(p.is_exact, p.is_at_once, p.delegates, p.is_fleet) for p in (o.plan for o in outs)]
    assert all(len({*each}) == len((True, False)) for each in zip(*kinds, strict=True))
