from __future__ import annotations

import pickle
from copy import copy
from dataclasses import asdict, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import ApiFailed, NotLoggedIn, TurnStopped
from steersman.journal import Outcome, TurnResult
from steersman.journal.costs import CostTracker
from steersman.journal.ends import cause_of, outcome_of
from steersman.journal.results import TurnResultBuilder
from steersman.messages import Assistant, Result, parse_message
from tests.samples import frames, traces


def results(trace: str) -> list[Result]:
    return [each for each in map(parse_message, frames(trace)) if isinstance(each, Result)]


def said(message_id: str, text: str, **fields: object) -> Assistant:
    body = {"id": message_id, "content": [{"type": "text", "text": text}]}
    message = parse_message({"type": "assistant", "message": body, **fields})
    assert isinstance(message, Assistant)
    return message


OUTCOMES: dict[str, list[Outcome]] = {
    "api_400": ["failed", "completed"],
    "api_401": ["failed", "completed"],
    "api_404_model": ["failed", "completed"],
    "api_529_gives_up": ["failed", "completed"],
    "api_connection_refused": ["failed"],
    "api_refusal": ["completed", "completed"],
    "api_max_tokens": ["completed", "completed"],
    "hook_continue_false": ["completed", "completed"],
    "hook_interrupt_pending": ["interrupted"],
    "hook_pre_defer": ["completed"],
    "interrupt_bash": ["interrupted", "completed"],
    "interrupt_before_first_byte": ["interrupted"],
    "interrupt_idle": ["completed", "completed"],
    "interrupt_mid_stream": ["interrupted", "completed"],
    "max_budget": ["failed", "failed"],
    "max_turns": ["failed", "completed"],
    "mcp_tool_interrupted": ["interrupted", "completed"],
    "no_api_key": ["failed"],
    "perm_deny": ["completed"],
    "perm_deny_interrupt": ["interrupted", "completed"],
    "perm_pending_then_interrupt": ["interrupted", "completed"],
    # The prompt that cut in is completed, the one it cut off is not.
    "queue_priority_now": ["interrupted", "completed"],
    "session_resume_fork_continue.7unknown": ["failed"],
    "startup_failure_result": ["failed"],
    "user_message_5mb": ["failed"],
    "user_should_query_false": ["completed", "completed"],
}


@pytest.mark.parametrize("trace", sorted(OUTCOMES))
def test_the_outcome_is_read_off_the_recorded_result(trace: str) -> None:
    assert [outcome_of(each) for each in results(trace)] == OUTCOMES[trace]


def test_every_recorded_result_with_an_error_has_its_outcome_in_the_table() -> None:
    unhappy = {
        trace
        for trace in traces()
        if any(each.is_error for each in results(trace))
        and trace not in ("hooks_all_events", "queue_interrupt", "interrupt_with_background.afford")
    }

    assert unhappy <= set(OUTCOMES)


@pytest.mark.parametrize(
    ("result", "was_interrupted", "outcome"),
    [
        (Result(is_error=True), True, "interrupted"),
        (Result(is_error=True), False, "failed"),
        (Result(is_error=False), True, "completed"),
        # The CLI sends another reason, so our interrupt did not end the turn.
        (Result(is_error=True, terminal_reason="api_error"), True, "failed"),
        (Result(is_error=False, terminal_reason="completed"), True, "completed"),
        (Result(is_error=False, terminal_reason="aborted_tools"), False, "interrupted"),
    ],
)
def test_on_older_clis_our_own_interrupt_tells_the_outcome(
    result: Result, *, was_interrupted: bool, outcome: Outcome
) -> None:
    assert outcome_of(result, was_interrupted=was_interrupted) == outcome


@pytest.mark.parametrize("trace", ["api_401", "no_api_key"])
def test_a_refused_login_is_a_cause_that_says_what_to_do(trace: str) -> None:
    cause = cause_of(results(trace)[0], "failed")

    assert isinstance(cause, NotLoggedIn)
    assert cause.what == results(trace)[0].result
    assert "ANTHROPIC_API_KEY" in cause.hint
    assert 'setting_sources=("user",)' in cause.hint


@pytest.mark.parametrize("trace", ["api_400", "max_turns", "interrupt_bash", "multi_turn_tools"])
def test_nothing_else_is_taken_for_a_missing_login(trace: str) -> None:
    causes = [cause_of(each, outcome_of(each)) for each in results(trace)]

    assert not any(isinstance(each, NotLoggedIn) for each in causes)


@pytest.mark.parametrize(
    ("trace", "why", "reason"),
    [
        ("max_turns", "max_turns", "Reached maximum number of turns (2)"),
        ("max_budget", "budget_exhausted", "Reached maximum budget ($0.002)"),
        ("interrupt_bash", "interrupted", "the turn was interrupted"),
        ("user_message_5mb", "blocking_limit", "Prompt is too long"),
        ("hook_continue_false", "hook_stopped", "a hook ended the turn"),
    ],
)
def test_a_turn_that_was_stopped_has_a_cause_in_plain_words(
    trace: str, why: str, reason: str
) -> None:
    causes = [cause_of(each, outcome_of(each)) for each in results(trace)]

    stopped = next(each for each in causes if isinstance(each, TurnStopped))
    assert (stopped.why, reason in str(stopped)) == (why, True)
    assert "ede_diagnostic" not in str(stopped)


@pytest.mark.parametrize(
    ("text", "why", "reason"),
    [
        (
            "Operation stopped by hook: enough",
            "hook_stopped",
            "a hook ended the turn: enough",
        ),
        (
            "UserPromptSubmit operation blocked by hook:\nnot\nnow\n\nOriginal prompt: go",
            "blocked_by_hook",
            "a hook blocked the prompt: not\nnow",
        ),
    ],
)
def test_a_prompt_that_a_hook_stopped_has_a_cause_and_the_same_words_of_the_model_have_none(
    text: str, why: str, reason: str
) -> None:
    stopped = cause_of(Result(result=text, num_turns=0), "completed")

    assert isinstance(stopped, TurnStopped)
    assert (stopped.why, str(stopped)) == (why, reason)
    assert cause_of(Result(result=text, num_turns=1), "completed") is None


@pytest.mark.parametrize(
    ("trace", "status"), [("api_400", 400), ("api_529_gives_up", 529), ("api_404_model", 404)]
)
def test_a_failure_of_the_api_has_its_status(trace: str, status: int) -> None:
    cause = cause_of(results(trace)[0], "failed")

    assert isinstance(cause, ApiFailed)
    assert cause.status == status
    assert cause.what == results(trace)[0].result


def test_only_a_completed_turn_has_no_cause() -> None:
    outcomes = get_args(Outcome)

    without = {each for each in outcomes if cause_of(None, each) is None}
    with_result = {each for each in outcomes if cause_of(Result(is_error=True), each) is None}

    assert (without, with_result) == ({"completed"}, {"completed"})


@pytest.mark.parametrize(
    "trace",
    [
        "multi_turn_tools",
        "api_400",
        "max_turns",
        "queue_during_turn",
        "queue_interrupt",
        "set_model",
    ],
)
def test_the_turns_of_one_process_cost_together_what_the_cli_says_in_the_end(trace: str) -> None:
    tracker = CostTracker()

    costs = [tracker.add(each).cost_usd for each in results(trace)]

    assert sum(costs) == pytest.approx(results(trace)[-1].total_cost_usd)
    assert all(cost >= 0 for cost in costs)


def test_a_resumed_conversation_costs_only_what_it_adds() -> None:
    (new,), (resumed,) = (
        results(f"session_resume_fork_continue.{part}") for part in ("1new", "2resume")
    )

    cost = CostTracker().add(resumed).cost_usd

    assert cost + (new.total_cost_usd or 0) == pytest.approx(resumed.total_cost_usd)


def test_after_a_clear_the_total_begins_anew_and_no_cost_is_lost() -> None:
    tracker = CostTracker()

    costs = [tracker.add(each).cost_usd for each in results("hooks_all_events")]

    totals = [each.total_cost_usd or 0.0 for each in results("hooks_all_events")]
    assert totals[-2] < totals[-3]
    assert sum(costs) == pytest.approx(totals[-3] + totals[-1])


@given(costs=st.lists(st.floats(0, 10), max_size=10), resets=st.sets(st.integers(0, 9)))
def test_on_older_clis_the_cost_is_the_difference_of_the_totals(
    costs: list[float], resets: set[int]
) -> None:
    tracker, total, seen = CostTracker(), 0.0, []
    for number, cost in enumerate(costs):
        if number in resets:
            total = 0.0
            tracker.add(Result(total_cost_usd=0.0))
        total += cost
        seen.append(tracker.add(Result(total_cost_usd=total)).cost_usd)

    assert seen == pytest.approx(costs)


def test_a_result_without_a_cost_costs_nothing() -> None:
    assert CostTracker().add(Result()).cost_usd == 0.0
    assert CostTracker().add(Result(model_usage_since_last_result={"m": None})).cost_usd == 0.0


def digest_of(*messages: Assistant) -> TurnResult:
    builder = TurnResultBuilder("u", 0.0)
    for message in messages:
        builder.record(message, 0.0)
    return builder.build(0.0, "completed")


def test_of_a_turn_that_is_too_large_the_newest_messages_are_kept_and_the_others_counted() -> None:
    turn = TurnResultBuilder("turn", started=0.0, memory=5_000)
    for number in range(100):
        turn.record(said(f"m{number}", f"text {number} {'x' * 500}"), at=float(number))

    result = turn.build(at=100.0, outcome="completed")

    assert result.left_out == 100 - len(result.blocks) > 90
    assert result.answer.startswith("text 99 ")
    assert result.text.startswith(f"text {result.left_out} ")


def test_one_message_that_is_too_large_alone_is_kept() -> None:
    turn = TurnResultBuilder("turn", started=0.0, memory=5_000)
    turn.record(said("m", "x" * 9_000), at=1.0)

    result = turn.build(at=2.0, outcome="completed")

    assert (len(result.text), result.left_out) == (9_000, 0)


def test_the_texts_of_one_message_are_joined_and_messages_are_paragraphs() -> None:
    found = digest_of(said("1", "Let me "), said("1", "look."), said("2", ""), said("3", "Done."))

    assert found.text == "Let me look.\n\nDone."
    assert found.answer == "Done."


def test_subagents_and_api_errors_are_not_what_the_agent_wrote() -> None:
    found = digest_of(
        said("1", "inside", parent_tool_use_id="toolu_1"),
        said("2", "API Error", is_api_error_message=True),
    )

    assert (found.text, found.answer) == ("", "")


@pytest.mark.parametrize("trace", ["multi_turn_tools", "subagent_forward_text", "thinking_blocks"])
def test_the_answer_is_what_the_cli_calls_the_result(trace: str) -> None:
    answers, spoken = list[str](), list[Assistant]()
    for message in map(parse_message, frames(trace)):
        if isinstance(message, Assistant):
            spoken.append(message)
        if isinstance(message, Result):
            answers.append(digest_of(*spoken).answer)
            spoken.clear()

    assert answers == [each.result for each in results(trace)]


def test_a_text_that_nobody_has_looked_at_is_a_field_like_the_others() -> None:
    found = digest_of(said("1", "Hello"))
    read = TurnResult(uuid="u", outcome="completed", text="Hello", answer="Hello", said=found.said)

    assert digest_of(said("1", "Hello")) == read
    assert repr(digest_of(said("1", "Hello"))) == repr(read)
    assert replace(digest_of(said("1", "Hello")), text="Bye") == replace(read, text="Bye")
    assert pickle.loads(pickle.dumps(digest_of(said("1", "Hello")))) == read
    assert copy(digest_of(said("1", "Hello"))) == read
    assert asdict(digest_of(said("1", "Hello")))["text"] == "Hello"


def test_a_text_is_put_together_once() -> None:
    found = digest_of(said("1", "Hel"), said("1", "lo"))

    assert found.text is found.text


def test_a_text_that_was_told_counts_whatever_was_said() -> None:
    builder = TurnResultBuilder("u", 0.0)
    builder.record(said("1", "Hello"), 0.0)

    assert builder.build(0.0, "failed", text="Hel").text == "Hel"


def test_a_result_has_no_other_field_that_comes_when_it_is_looked_at() -> None:
    with pytest.raises(AttributeError, match="no 'texts'"):
        getattr(digest_of(), "texts")  # noqa: B009 - a type checker would not let it stand


def test_a_turn_succeeds_by_completing() -> None:
    outcomes: list[Outcome] = ["completed", "failed", "interrupted", "cancelled", "parked"]

    assert [TurnResult(uuid="u", outcome=each).is_success for each in outcomes] == [
        True,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("why", "hint"),
    [
        ("max_turns", "raise max_turns="),
        ("budget_exhausted", "raise max_budget_usd="),
        ("blocking_limit", "send /compact"),
        ("structured_output_retry_exhausted", "make the schema less strict, or the prompt clearer"),
        ("something_new", TurnStopped.advice),
    ],
)
def test_a_turn_that_was_stopped_says_what_to_do(why: str, hint: str) -> None:
    cause = cause_of(Result(is_error=True, terminal_reason=why, errors=["because"]), "failed")

    assert isinstance(cause, TurnStopped)
    assert (cause.why, cause.hint) == (why, hint)
    assert cause.what.endswith(": because")
