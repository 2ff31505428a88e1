"""The journals of a process keep together what they may, and the largest ones give way."""

from __future__ import annotations

import threading

import pytest

from steersman._session.shared_memory import SHARED, SharedMemory
from steersman.agent import limit_journal_memory
from steersman.errors import UsageError
from steersman.journal import Journal, Kind
from steersman.journal.journal import ENTRY_WEIGHT, FIRST_REPORT

LINE = b"x" * (10_000 - ENTRY_WEIGHT)


def grown(journal: Journal, size: int) -> Journal:
    for _ in range(size // 10_000):
        journal.append(0.0, Kind.MESSAGE, LINE)
    return journal


def test_many_journals_keep_no_more_than_the_total() -> None:
    shared = SharedMemory(10_000_000)
    journals = [grown(shared.journal(8_000_000), 7_000_000) for _ in range(20)]

    assert sum(each.kept for each in journals) <= shared.total * 9 // 8
    assert min(each.kept for each in journals) >= shared.total * 7 // 8 // len(journals) - 10_000


@pytest.mark.parametrize("number", [1, 10, 100, 500])
def test_what_all_keep_does_not_depend_on_how_many_they_are(number: int) -> None:
    shared = SharedMemory(10_000_000)
    journals = [shared.journal(10_000_000) for _ in range(number)]
    most = 0

    for _ in range(40_000_000 // number // 1_000):
        for each in journals:
            each.append(0.0, Kind.MESSAGE, LINE[: 1_000 - ENTRY_WEIGHT])
        most = max(most, sum(each.kept for each in journals))

    assert shared.total * 3 // 4 < most <= shared.total * 9 // 8 + number * FIRST_REPORT


def test_the_largest_gives_way_and_small_ones_lose_nothing() -> None:
    shared = SharedMemory(10_000_000)
    small = grown(shared.journal(8_000_000), 100_000)
    large = grown(shared.journal(8_000_000), 8_000_000)

    other = grown(shared.journal(8_000_000), 6_000_000)

    assert small.lost_after(0) == 0
    assert large.lost_after(0) > 0
    assert large.kept + other.kept <= shared.total * 9 // 8


def test_a_journal_that_may_keep_more_than_the_total_keeps_it() -> None:
    shared = SharedMemory(1_000_000)

    assert grown(shared.journal(5_000_000), 4_000_000).lost_after(0) == 0


def test_a_journal_of_another_thread_forgets_with_its_next_entry() -> None:
    shared = SharedMemory(4_000_000)
    elsewhere = shared.journal(4_000_000)
    thread = threading.Thread(target=grown, args=(elsewhere, 4_000_000))
    thread.start()
    thread.join(10)

    grown(shared.journal(4_000_000), 2_000_000)
    before = elsewhere.lost_after(0)
    elsewhere.append(0.0, Kind.MESSAGE, LINE)

    assert before == 0 < elsewhere.lost_after(0)


def test_a_journal_that_is_gone_counts_no_more() -> None:
    shared = SharedMemory(4_000_000)
    grown(shared.journal(4_000_000), 3_000_000)

    assert grown(shared.journal(4_000_000), 3_000_000).lost_after(0) == 0


def test_the_limit_of_the_process_can_be_set() -> None:
    before = SHARED.total
    try:
        limit_journal_memory(before + 1)

        assert SHARED.total == before + 1
    finally:
        limit_journal_memory(before)


@pytest.mark.parametrize("size", [0, -1, True, "1 GB"])
def test_a_limit_that_is_none_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="a number of bytes above 0"):
        limit_journal_memory(size)
