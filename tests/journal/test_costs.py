from __future__ import annotations

from typing import Any

import pytest

from steersman import _json
from steersman.journal.costs import Cost, CostTracker, add_usage, totals_in
from steersman.messages import ModelUsage, Result, Usage, parse_message
from tests.samples import frames, traces


def results(trace: str) -> list[Result]:
    return [each for each in map(parse_message, frames(trace)) if isinstance(each, Result)]


def told(**fields: Any) -> Result:
    result = parse_message({"type": "result", **fields})
    assert isinstance(result, Result)
    return result


def tokens(spent: Cost) -> dict[str, tuple[int, int]]:
    return {
        model: (each.input_tokens, each.output_tokens) for model, each in spent.model_usage.items()
    }


@pytest.mark.parametrize("trace", [each for each in traces() if each != "hooks_all_events"])
def test_the_past_and_all_results_are_together_the_clis_last_total(trace: str) -> None:
    tracker = CostTracker()

    spent = [tracker.add(each) for each in results(trace)]

    total = sum(each.cost_usd for each in spent)
    assert (tracker.before or 0.0) + total == pytest.approx(tracker.total)


def test_what_a_resumed_conversation_cost_before_is_known_and_not_counted() -> None:
    tracker = CostTracker()

    (spent,) = [tracker.add(each) for each in results("session_resume_fork_continue.2resume")]

    assert spent.cost_usd == pytest.approx(0.00081)
    assert tracker.before == pytest.approx(0.00081)
    assert tracker.total == pytest.approx(0.00162)


def test_a_resumed_conversation_that_begins_with_a_free_turn_is_not_charged_its_past() -> None:
    tracker = CostTracker()

    free = tracker.add(told(total_cost_usd=5.0, model_usage_since_last_result={}))

    assert free == Cost()
    assert tracker.before == 5.0


def test_tokens_are_counted_by_model_and_by_result() -> None:
    tracker = CostTracker()

    spent = [tracker.add(each) for each in results("subagent_background")]

    assert [tokens(each) for each in spent] == [
        {"claude-opus-5-5": (200, 40), "claude-haiku-5-5": (100, 20)},
        {"claude-haiku-5-5": (100, 20), "claude-opus-5-5": (100, 20)},
    ]


def test_on_older_clis_tokens_are_the_difference_of_the_totals() -> None:
    tracker = CostTracker()
    older = [
        told(total_cost_usd=each.total_cost_usd, modelUsage=each.raw["modelUsage"])
        for each in results("set_model")
    ]

    spent = [tracker.add(each) for each in older]

    assert [tokens(each) for each in spent] == [
        {"claude-opus-5-5": (100, 20)},
        {"claude-haiku-4-5": (100, 20)},
        {"claude-sonnet-5-5": (100, 20)},
        {"claude-opus-5-5": (100, 20)},
        {"no-such-model-xyz": (100, 20)},
        {"no-such-model-xyz": (100, 20)},
    ]


def test_a_total_that_fell_was_reset() -> None:
    tracker = CostTracker()
    tracker.add(told(total_cost_usd=1.0, modelUsage={"m": {"inputTokens": 5, "costUSD": 1.0}}))

    spent = tracker.add(
        told(total_cost_usd=0.5, modelUsage={"m": {"inputTokens": 2, "costUSD": 0.5}})
    )

    assert (spent.cost_usd, tokens(spent)) == (0.5, {"m": (2, 0)})


def test_spending_adds_up_model_by_model() -> None:
    one = Cost(1.0, {"m": ModelUsage(input_tokens=1, cost_usd=1.0, context_window=9)})
    two = Cost(2.0, {"m": ModelUsage(input_tokens=2, cost_usd=2.0), "n": ModelUsage()})

    both = one + two

    assert both == Cost(
        3.0,
        {"m": ModelUsage(input_tokens=3, cost_usd=3.0, context_window=9), "n": ModelUsage()},
    )


def test_strange_figures_cost_nothing_and_stop_nobody() -> None:
    spent = CostTracker().add(
        told(model_usage_since_last_result={"m": "many", "n": {"costUSD": []}})
    )

    assert spent.cost_usd == 0.0


def test_usage_of_several_results_is_summed() -> None:
    usages = [Usage(input_tokens=1, output_tokens=2), Usage(input_tokens=10, output_tokens=20)]

    assert add_usage(usages) == Usage(input_tokens=11, output_tokens=22)
    assert add_usage(usages[:1]) is usages[0]


def test_totals_with_which_a_cli_begins_are_not_charged_to_a_turn() -> None:
    tracker = CostTracker()
    usage = {"m": {"costUSD": 0.5, "inputTokens": 10}}
    more = {"m": {"costUSD": 0.75, "inputTokens": 14}}

    tracker.begin(0.5, usage)
    spent = tracker.add(told(total_cost_usd=0.75, modelUsage=more))
    tracker.begin(0.0, {})
    after_another = tracker.add(told(total_cost_usd=0.75, modelUsage=more))

    assert (spent.cost_usd, tokens(spent)) == (0.25, {"m": (4, 0)})
    assert (after_another.cost_usd, tokens(after_another)) == (0.75, {"m": (14, 0)})
    assert tracker.before == 0.5


@pytest.mark.parametrize(
    ("session", "totals"),
    [
        ({"total_cost_usd": 0.5, "model_usage": {"m": {}}}, (0.5, {"m": {}})),
        ({"total_cost_usd": 1}, (1, {})),
        ({"total_cost_usd": 1, "model_usage": []}, (1, {})),
        ({"total_cost_usd": "1"}, None),
        ({}, None),
    ],
)
def test_totals_are_read_from_an_answer_to_get_usage(session: Any, totals: Any) -> None:
    answer = {"subtype": "success", "request_id": "r", "response": {"session": session}}

    assert totals_in(_json.dumps({"type": "control_response", "response": answer})) == totals
    assert totals_in(_json.dumps({"type": "control_request", "response": answer})) is None
    assert totals_in(b'{"total_cost_usd"') is None
