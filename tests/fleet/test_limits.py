"""What holds turns: money, refusals of the API, memory; in numbers and in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steersman.errors import UsageError
from steersman.fleet.budgets import Budgets, BudgetStatus, check_budget, period_of
from steersman.fleet.holds import RateControl, behind, limited_until, memory_hold, rate_hold
from steersman.messages.limits import ApiRetry, RateLimitEvent, RateLimitInfo
from steersman.messages.parsing import Message

NOON = 1_795_089_600.0
"""Noon of 19 November 2026, UTC."""
MEGABYTE = 1 << 20


# --- Money -------------------------------------------------------------------------------


def test_a_period_is_a_day_or_a_month_of_utc() -> None:
    assert [period_of("day", NOON), period_of("month", NOON), period_of("ever", NOON)] == [
        "2026-11-19",
        "2026-11",
        "",
    ]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("", 1.0, "day"), "name"),
        ((7, 1.0, "day"), "name"),
        (("team", 0, "day"), "usd"),
        (("team", "1", "day"), "usd"),
        (("team", 1.0, "week"), "per: got 'week', allowed: .*day.*month.*ever"),
    ],
    ids=str,
)
def test_a_budget_that_means_nothing_is_refused(given: tuple[object, ...], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        check_budget(*given)
    with pytest.raises(UsageError, match=named):
        Budgets().define(*given)  # type: ignore[arg-type]  # bad on purpose


def test_a_budget_that_is_changed_keeps_what_it_has_spent() -> None:
    budgets = Budgets(lambda: NOON)
    budgets.define("team", 1.0, "day")
    budgets.reserve("team", "a", 1.0)
    budgets.settle("team", "a", 0.75)
    out = budgets.left("team", None)
    budgets.define("team", 2.0, "day")

    assert budgets.status() == {"team": BudgetStatus(2.0, 0.75, 0.0, "day")}
    assert out is not None
    assert str(out).startswith("the budget 'team' has reached its limit of 1 usd: 0.75")
    assert "fleet.budget('team', usd=..., per='day')" in str(out)
    assert budgets.left("team", 1.25) is None
    assert budgets.left("team", 1.26) is not None


def test_a_turn_without_an_amount_reserves_the_mean_of_those_that_have_cost_something() -> None:
    budgets = Budgets(lambda: NOON)
    budgets.define("team", 10.0, "month")
    for job, cost in (("a", 1.0), ("b", 3.0), ("c", 0.0)):
        budgets.reserve("team", job, None)
        budgets.settle("team", job, cost)
    budgets.reserve("team", "d", None)
    first = budgets.status()["team"]
    second = [budgets.reserve("team", "e", 4.5), budgets.reserve("team", "e", 4.0)]

    assert (first.spent, first.reserved) == (4.0, 2.0)
    assert second == ["wait", "reserved"]
    # 4 are spent and 6 reserved: what is reserved may come back, but no more than that.
    assert [budgets.reserve("team", "f", each) for each in (6.0, 6.1)] == ["wait", "out"]


def test_a_budget_that_is_not_there_is_refused_with_those_that_are() -> None:
    budgets = Budgets()
    budgets.check(None)
    with pytest.raises(UsageError, match="a budget of this fleet\n") as refused:
        budgets.check("team-a")
    for name in ("team-b", "team-c"):
        budgets.define(name, 1.0, "ever")
    with pytest.raises(UsageError, match="a budget of this fleet: team-b, team-c"):
        budgets.check("team-a")
    budgets.check("team-b")

    assert "first call fleet.budget('team-a', usd=..., per=...)" in str(refused.value)


# --- The rate limit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "until"),
    [
        (ApiRetry(retry_delay_ms=4000, error_status=429), NOON + 4),
        (ApiRetry(retry_delay_ms=4000, error_status=529), NOON + 4),
        (ApiRetry(retry_delay_ms=20, error_status=429), NOON + 1),
        (ApiRetry(retry_delay_ms=4000, error="rate_limit"), NOON + 4),
        (ApiRetry(retry_delay_ms=4000, error="overloaded"), NOON + 4),
        (ApiRetry(retry_delay_ms=4000, error_status=500, error="api_error"), None),
        (RateLimitEvent(rate_limit_info=RateLimitInfo(status="allowed_warning")), None),
        (
            RateLimitEvent(rate_limit_info=RateLimitInfo(status="rejected", resets_at=NOON + 60)),
            NOON + 60,
        ),
        (
            RateLimitEvent(rate_limit_info=RateLimitInfo(status="rejected", resets_at=NOON - 60)),
            NOON + 1,
        ),
        (RateLimitEvent(rate_limit_info=RateLimitInfo(status="rejected")), NOON + 1),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_refusal_of_the_api_says_until_when_it_lasts(
    message: Message, until: float | None
) -> None:
    assert limited_until(message, NOON) == until


def test_refusals_halve_the_turns_at_once_down_to_one_and_quiet_raises_them_one_by_one() -> None:
    control = RateControl(8, quiet=10.0)
    assert (control.limit, control.changes_at(0.0)) == (8, None)
    control.hit(1.0, 3.0, began=0.0, working=6)
    halved = control.limit
    # A later refusal of a turn that began before is no evidence, but its time counts.
    control.hit(2.0, 5.0, began=0.5, working=6)
    seen = [control.is_closed(each) for each in (4.9, 5.0)]
    times = [control.changes_at(4.9), control.changes_at(5.0)]
    control.hit(6.0, 7.0, began=5.5, working=1)
    least = control.limit
    raised: list[int] = []
    for now in (16.9, 17.0, 26.9, 37.0, 1000.0):
        control.at(now)
        raised.append(control.limit)

    assert (halved, control.limit, seen, times) == (3, 8, [True, False], [5.0, 15.0])
    assert (least, raised) == (1, [1, 2, 2, 4, 8])
    assert control.changes_at(1000.0) is None


# --- Words -------------------------------------------------------------------------------


def test_the_words_name_numbers_and_the_next_full_minute() -> None:
    until = datetime.fromtimestamp(NOON + 120, UTC).astimezone()

    assert [behind(1), behind(2)] == [
        "behind 1 turn of its conversation",
        "behind 2 turns of its conversation",
    ]
    assert [rate_hold(None, 1).why, rate_hold(None, 2).why] == [
        "rate limit: 1 turn at once for now",
        "rate limit: 2 turns at once for now",
    ]
    assert rate_hold(90.0).words(NOON) == f"rate limit until {until:%H:%M}"
    assert rate_hold(61.0).words(NOON) == rate_hold(120.0).words(NOON)
    assert memory_hold(5 * MEGABYTE, 9 * MEGABYTE, MEGABYTE).why == "memory: 5 MB free, 9 MB wanted"
    assert memory_hold(9 * MEGABYTE, 9 * MEGABYTE, MEGABYTE).why == (
        "memory: 9 MB free, 9 MB wanted beside 1 MB for CLIs that start"
    )
