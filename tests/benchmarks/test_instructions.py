from __future__ import annotations

import json

import pytest

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
    assert [place for place, counts in kept.items() if set(counts) != set(WORK)] == []
    assert 0 < TOLERANCE < 0.1
