"""In whatever order totals arrive, nothing is charged twice or forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman._session.usage_limits import NOTHING, Spent, UsageTotals


def dollars(number: float) -> Spent:
    return Spent(number, 10 * number)


def test_a_late_first_report_is_charged_to_a_new_conversation() -> None:
    usage = UsageTotals()
    usage.new_cli(is_fresh=True)
    usage.new_turn()
    usage.model_answered()

    usage.update(dollars(2))

    assert usage.turn == usage.session == dollars(2)


def test_the_past_of_a_resumed_conversation_is_not_charged() -> None:
    usage = UsageTotals()
    usage.new_cli(is_fresh=False)
    usage.update(dollars(7))
    usage.new_turn()
    usage.model_answered()

    usage.update(dollars(8))

    assert usage.turn == usage.session == dollars(1)


def test_what_an_interrupted_turn_still_costs_is_not_charged_to_the_next_one() -> None:
    usage = UsageTotals()
    usage.new_cli(is_fresh=True)
    usage.new_turn()
    usage.model_answered()
    usage.settle(NOTHING, NOTHING)
    usage.new_turn()
    usage.update(dollars(2))
    usage.model_answered()

    usage.update(dollars(3))

    assert usage.turn == dollars(1)
    assert usage.session == dollars(3)


def test_a_result_without_earlier_totals_is_charged_as_it_reports() -> None:
    usage = UsageTotals()
    usage.new_cli(is_fresh=False)
    usage.new_turn()

    usage.settle(dollars(9), dollars(1))
    usage.settle(dollars(11), dollars(2))

    assert usage.session == dollars(3)


def test_totals_that_were_reset_are_added() -> None:
    usage = UsageTotals()
    usage.new_cli(is_fresh=True)
    usage.settle(dollars(5), dollars(5))

    usage.settle(dollars(1), dollars(1))
    usage.update(dollars(2))

    assert usage.session == dollars(7)


def test_another_cli_continues_from_the_use_so_far() -> None:
    usage = UsageTotals()
    usage.new_cli(is_fresh=True)
    usage.model_answered()
    usage.update(dollars(4))

    usage.new_cli(is_fresh=False)
    usage.update(dollars(1))
    usage.update(dollars(3))

    assert usage.session == dollars(6)


STEPS = st.lists(
    st.tuples(st.sampled_from(["use", "ask", "result", "turn", "cli"]), st.integers(1, 9))
)


@given(st.integers(0, 9), STEPS)
def test_a_report_always_makes_the_totals_exact(past: int, steps: list[tuple[str, int]]) -> None:
    """Holds if totals are requested before the first prompt, and costs follow the answers."""
    usage = UsageTotals()
    usage.new_cli(is_fresh=False)
    usage.update(dollars(past))
    totals, used, before = past, 0, 0

    for step, number in steps:
        match step:
            case "use":
                usage.model_answered()
                totals, used = totals + number, used + number
            case "ask":
                usage.update(dollars(totals))
                assert (usage.session, usage.turn) == (dollars(used), dollars(used - before))
            case "result":
                usage.settle(dollars(totals), NOTHING)
                assert usage.session == dollars(used)
            case "turn":
                usage.new_turn()
                usage.update(dollars(totals))
                before = used
            case _:
                # Use that a CLI never reports is lost when it exits, so request it first.
                usage.update(dollars(totals))
                usage.new_cli(is_fresh=False)
                totals = number
                usage.update(dollars(totals))
