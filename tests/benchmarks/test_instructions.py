from __future__ import annotations

import json

import pytest

from benchmarks import floor
from benchmarks.instructions import KEPT, TOLERANCE, check
from benchmarks.workloads import WORK, run


@pytest.mark.parametrize(("work", "messages"), [("partial", 6), ("assistant", 6), ("requests", 0)])
async def test_a_workload_does_all_its_items(work: str, messages: int) -> None:
    assert await run(work, 6) == messages


@pytest.mark.parametrize(
    ("count", "is_fine", "expected"),
    [(1_000, True, "fine"), (1_029, True, "fine"), (1_040, False, "MORE"), (500, True, "fine")],
)
def test_a_count_that_has_grown_fails_the_check(
    count: int, expected: str, *, is_fine: bool
) -> None:
    (line,), verdict = check({"partial": count}, {"partial": 1_000})

    assert (verdict, expected in line) == (is_fine, True)


def test_without_counts_for_this_interpreter_nothing_is_compared() -> None:
    (line,), verdict = check({"partial": 1_000}, {})

    assert verdict
    assert "none kept" in line


def test_all_workloads_are_kept_for_each_interpreter() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))

    assert kept
    bare = {place: counts for place, counts in kept.items() if place.endswith(floor.FLOOR)}
    assert [place for place in kept.keys() - bare.keys() if set(kept[place]) != set(WORK)] == []
    assert [place for place, ratios in bare.items() if set(ratios) != set(floor.GOALS)] == []
    assert 0 < TOLERANCE < 0.1


def test_each_workload_beside_the_bare_loop_has_a_goal() -> None:
    assert set(floor.GOALS) == {*floor.WORK, floor.START}


@pytest.mark.parametrize(
    ("found", "is_fine", "expected"),
    [(3.0, True, "goal met"), (3.6, True, "goal missed"), (4.0, False, "MORE than the 3.40")],
)
def test_a_ratio_to_the_bare_loop_that_has_grown_fails_the_check(
    found: float, expected: str, *, is_fine: bool
) -> None:
    (line,), verdict = floor.compare({"trickle": found}, {"trickle": 3.4})

    assert (verdict, expected in line) == (is_fine, True)
