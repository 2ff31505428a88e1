"""How often a session restarts its CLI, and how long it waits: numbers in, numbers out."""

from __future__ import annotations

from steersman._session.recovery import RestartBudget
from steersman.options import Revival


def test_the_first_restart_is_at_once_and_each_further_one_waits_twice_as_long() -> None:
    budget = RestartBudget(Revival(most=5, backoff=0.5))

    assert [budget.next_pause() for _ in range(4)] == [0.0, 0.5, 1.0, 2.0]


def test_a_budget_is_spent_after_its_last_restart() -> None:
    budget = RestartBudget(Revival(most=2))

    spent = []
    for _ in range(2):
        spent.append(budget.is_spent)
        budget.next_pause()

    assert [*spent, budget.is_spent] == [False, False, True]
    assert budget.attempts == 2


def test_only_a_cli_that_ran_longer_than_well_after_starts_the_count_again() -> None:
    budget = RestartBudget(Revival(most=2, well_after=60.0))
    budget.next_pause()
    budget.restarted(100.0)

    budget.lost(160.0)
    assert budget.attempts == 1

    budget.lost(160.1)
    assert budget.attempts == 0


def test_a_turn_that_completed_starts_the_count_again() -> None:
    budget = RestartBudget(Revival(most=1))
    budget.next_pause()

    budget.clear()

    assert (budget.attempts, budget.is_spent) == (0, False)
