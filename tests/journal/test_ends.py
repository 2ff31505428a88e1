"""The table of ends, against what the CLIs were seen to send for each."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import ApiFailed, TurnStopped
from steersman.journal.ends import ENDS, cause_of, end_of, outcome_of, was_deferred
from steersman.messages.turns import Result
from steersman_conformance.scenes.ends import DEFERRED, FIELDS, INTERRUPTED, OLDER, SPELT


def spelt(values: Any) -> Result:
    given = dict(zip(FIELDS, values, strict=True))
    return Result(**given)


NO_WORD = {"blocked_by_hook"}
"""Known by the text of its result alone."""

CASES = [
    *((why, values) for why, values in {**SPELT, **INTERRUPTED}.items() if why not in NO_WORD),
    *((why, OLDER[why]) for why in OLDER if OLDER[why] != SPELT[why] and why != "blocking_limit"),
    *(("tool_deferred", values) for values in DEFERRED),
]


@pytest.mark.parametrize(("why", "values"), CASES)
def test_each_end_that_a_cli_was_seen_to_send_is_known_by_its_word(why: str, values: Any) -> None:
    assert end_of(spelt(values)).why == why


def test_each_end_of_the_table_was_seen_on_a_cli() -> None:
    assert {each.why for each in ENDS} == {why for why, _ in CASES}


def test_the_outcome_agrees_with_the_meaning_of_the_end() -> None:
    found = {(end_of(spelt(v)).meaning, outcome_of(spelt(v))) for _, v in CASES}

    assert found == {
        ("completed", "completed"),
        ("deferred", "completed"),
        ("hook", "completed"),
        ("interrupted", "interrupted"),
        ("failed", "failed"),
    }


@pytest.mark.parametrize("values", DEFERRED)
def test_a_deferral_is_known_also_when_it_is_the_second_one(values: Any) -> None:
    assert was_deferred(spelt(values))


def test_what_an_older_cli_says_by_the_subtype_alone_has_a_hint_too() -> None:
    cause = cause_of(spelt(OLDER["budget_exhausted"]), "failed")

    assert isinstance(cause, TurnStopped)
    assert (cause.why, cause.hint) == ("budget_exhausted", "raise max_budget_usd=")


def test_an_error_that_says_completed_is_a_failure_of_the_api() -> None:
    assert isinstance(cause_of(spelt(OLDER["api_error"]), "failed"), ApiFailed)


@pytest.mark.parametrize(
    ("result", "why", "meaning"),
    [
        (Result(terminal_reason="aborted_by_something_new", is_error=True), None, "interrupted"),
        (Result(terminal_reason="something_new"), None, "completed"),
        (Result(terminal_reason="something_new", is_error=True), None, "failed"),
        (Result(subtype="error_of_a_new_kind", is_error=True), "error_of_a_new_kind", "failed"),
    ],
)
def test_an_end_that_is_not_known_keeps_its_word(
    result: Result, why: str | None, meaning: str
) -> None:
    found = end_of(result)

    assert (found.why, found.meaning) == (why or result.terminal_reason, meaning)
