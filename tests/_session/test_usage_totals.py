"""The bill: whatever the order in which totals come, nothing is charged twice or forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman._session.usage_totals import NOTHING, Spent, UsageTotals


def dollars(number: float) -> Spent:
    return Spent(number, 10 * number)


def test_a_first_answer_that_comes_late_is_charged_to_a_new_conversation() -> None:
    bill = UsageTotals()
    bill.new_cli(is_fresh=True)
    bill.new_turn()
    bill.speak()

    bill.hear(dollars(2))

    assert bill.turn == bill.session == dollars(2)


def test_the_past_of_a_resumed_conversation_is_not_charged() -> None:
    bill = UsageTotals()
    bill.new_cli(is_fresh=False)
    bill.hear(dollars(7))
    bill.new_turn()
    bill.speak()

    bill.hear(dollars(8))

    assert bill.turn == bill.session == dollars(1)


def test_what_an_interrupted_turn_still_costs_is_not_charged_to_the_next_one() -> None:
    bill = UsageTotals()
    bill.new_cli(is_fresh=True)
    bill.new_turn()
    bill.speak()
    bill.settle(NOTHING, NOTHING)
    bill.new_turn()
    bill.hear(dollars(2))
    bill.speak()

    bill.hear(dollars(3))

    assert bill.turn == dollars(1)
    assert bill.session == dollars(3)


def test_a_result_without_a_mark_is_believed() -> None:
    bill = UsageTotals()
    bill.new_cli(is_fresh=False)
    bill.new_turn()

    bill.settle(dollars(9), dollars(1))
    bill.settle(dollars(11), dollars(2))

    assert bill.session == dollars(3)


def test_totals_that_begin_anew_are_added() -> None:
    bill = UsageTotals()
    bill.new_cli(is_fresh=True)
    bill.settle(dollars(5), dollars(5))

    bill.settle(dollars(1), dollars(1))
    bill.hear(dollars(2))

    assert bill.session == dollars(7)


def test_another_cli_goes_on_from_what_was_used() -> None:
    bill = UsageTotals()
    bill.new_cli(is_fresh=True)
    bill.speak()
    bill.hear(dollars(4))

    bill.new_cli(is_fresh=False)
    bill.hear(dollars(1))
    bill.hear(dollars(3))

    assert bill.session == dollars(6)


STEPS = st.lists(
    st.tuples(st.sampled_from(["use", "ask", "result", "turn", "cli"]), st.integers(1, 9))
)


@given(st.integers(0, 9), STEPS)
def test_an_answer_always_brings_the_bill_up_to_the_truth(
    past: int, steps: list[tuple[str, int]]
) -> None:
    """As long as a CLI is asked before it works, and its costs come behind its words."""
    bill = UsageTotals()
    bill.new_cli(is_fresh=False)
    bill.hear(dollars(past))
    totals, used, before = past, 0, 0

    for step, number in steps:
        match step:
            case "use":
                bill.speak()
                totals, used = totals + number, used + number
            case "ask":
                bill.hear(dollars(totals))
                assert (bill.session, bill.turn) == (dollars(used), dollars(used - before))
            case "result":
                bill.settle(dollars(totals), NOTHING)
                assert bill.session == dollars(used)
            case "turn":
                bill.new_turn()
                bill.hear(dollars(totals))
                before = used
            case _:
                # What was used and never told is lost with the CLI.
                bill.hear(dollars(totals))
                bill.new_cli(is_fresh=False)
                totals = number
                bill.hear(dollars(totals))
