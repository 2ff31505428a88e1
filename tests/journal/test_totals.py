from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.errors import ApiFailed, CliExited, NotLoggedIn, TurnStopped
from steersman.journal import Entry, Kind
from steersman.journal.totals import SessionTotals
from steersman.messages import TextBlock, ToolUseBlock, Usage
from tests.samples import Frame, frames, kind_of


class Feed:
    """`SessionTotals` that are given frames, one second apart."""

    def __init__(self) -> None:
        self.totals = SessionTotals()
        self.at = 0.0

    def record(self, *said: Frame, turns: tuple[str, ...] = ("u1",)) -> list[Any]:
        found: list[Any] = []
        for frame in said:
            self.at += 1.0
            entry = Entry(int(self.at), self.at, Kind.MESSAGE, json.dumps(frame).encode(), turns)
            name = frame["subtype"] if frame["type"] == "system" else frame["type"]
            found += self.totals.record(entry, name)
        return found


def said(*blocks: Frame, message_id: str = "m1", **fields: Any) -> Frame:
    body = {"id": message_id, "content": list(blocks)}
    return {"type": "assistant", "message": body, **fields}


def text(words: str) -> Frame:
    return {"type": "text", "text": words}


def use(tool_use_id: str, name: str = "Bash") -> Frame:
    return {"type": "tool_use", "id": tool_use_id, "name": name, "input": {}}


def answered(tool_use_id: str) -> Frame:
    return {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": tool_use_id}]},
    }


def result(cost: float, **fields: Any) -> Frame:
    since = {"m": {"inputTokens": 1, "costUSD": cost}}
    return {
        "type": "result",
        "subtype": "success",
        "usage": {"input_tokens": 1},
        "model_usage_since_last_result": since,
        **fields,
    }


def test_a_turns_result_says_all_that_it_did() -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)

    feed.record(said(text("I look.")), said(use("t1")), answered("t1"))
    feed.record(said(text("Done."), message_id="m2"), result(0.5, result="Done."))
    found = feed.totals.settle("u1", 10.0, "completed")

    assert (found.outcome, found.text, found.answer) == ("completed", "I look.\n\nDone.", "Done.")
    assert found.blocks == (
        TextBlock(text="I look."),
        ToolUseBlock(id="t1", name="Bash"),
        TextBlock(text="Done."),
    )
    assert [(each.name, each.started, each.duration) for each in found.tool_calls] == [
        ("Bash", 2.0, 1.0)
    ]
    assert (found.cost_usd, found.usage, found.duration) == (0.5, Usage(input_tokens=1), 10.0)
    assert found.model_usage["m"].input_tokens == 1


def test_calls_are_reported_as_they_begin_and_end() -> None:
    feed = Feed()

    found = feed.record(said(use("t1"), use("t2")), answered("t2"))

    assert [(each.tool_use_id, each.is_running) for each in found] == [
        ("t1", True),
        ("t2", True),
        ("t2", False),
    ]


def test_turns_that_share_a_result_share_its_words_and_the_first_bears_the_cost() -> None:
    feed = Feed()
    for uuid in ("u1", "u2"):
        feed.totals.open(uuid, 0.0)
    feed.record(said(text("both")), result(0.5), turns=("u1", "u2"))

    first, second = (feed.totals.settle(uuid, 5.0, "completed") for uuid in ("u1", "u2"))

    assert (first.text, second.text) == ("both", "both")
    assert (first.cost_usd, second.cost_usd) == (0.5, 0.0)
    assert first.result == second.result


def test_several_results_of_one_turn_are_summed() -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)
    feed.record(said(text("one")), result(0.5, permission_denials=[{"n": 1}]))
    feed.totals.charge("u1")

    feed.record(result(0.25, permission_denials=[{"n": 2}], stop_reason="end_turn"))
    found = feed.totals.settle("u1", 9.0, "completed")

    assert found.cost_usd == 0.75
    assert found.usage == Usage(input_tokens=2)
    assert found.model_usage["m"].input_tokens == 2
    assert found.permission_denials == [{"n": 1}, {"n": 2}]
    assert found.stop_reason == "end_turn"


def test_what_nobody_asked_for_costs_the_session_and_no_turn() -> None:
    feed = Feed()
    woken = result(0.5, origin={"kind": "task-notification"})
    feed.record(said(text("I woke up")), woken, turns=())

    feed.totals.open("u1", 5.0)
    feed.record(result(0.25))
    found = feed.totals.settle("u1", 9.0, "completed")

    assert (found.cost_usd, found.text) == (0.25, "")
    assert feed.totals.cost_usd == 0.75
    assert (feed.totals.results, feed.totals.settled) == (2, 1)


def test_a_turn_without_a_result_keeps_what_it_has() -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)
    feed.record(said(text("half")), said(use("t1")))
    cause = CliExited("gone")

    found = feed.totals.settle("u1", 9.0, "failed", has_result=False, cause=cause)

    assert (found.text, found.answer, found.cause, found.result) == ("half", "half", cause, None)
    assert [each.is_running for each in found.tool_calls] == [True]


def test_a_prompt_that_was_never_written_settles_too() -> None:
    totals = SessionTotals()

    found = totals.settle("u9", 3.0, "cancelled", has_result=False)

    assert (found.uuid, found.outcome, found.duration) == ("u9", "cancelled", 0.0)
    assert totals.settled == 0


def test_a_prompt_written_again_after_a_revival_goes_on() -> None:
    feed = Feed()
    feed.totals.open("u1", 1.0)
    feed.record(said(text("before the crash")))

    feed.totals.open("u1", 8.0)
    found = feed.totals.settle("u1", 9.0, "completed", has_result=False)

    assert (found.text, found.duration) == ("before the crash", 8.0)
    assert feed.totals.started == 1


def test_late_words_of_a_settled_turns_subagent_are_kept_for_nobody() -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)
    feed.totals.settle("u1", 1.0, "completed", has_result=False)

    feed.record(said(use("t2"), parent_tool_use_id="t1"))

    assert feed.totals.calls.count == 1


def test_a_retry_lasts_until_something_comes() -> None:
    feed = Feed()
    retry = {"type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 10}

    feed.record(retry)
    assert feed.totals.retry is not None
    assert (feed.totals.retry[0].attempt, feed.totals.retry[1]) == (2, 1.0)

    feed.record(said(text("there")))
    assert feed.totals.retry is None


def test_the_reason_of_a_failure_is_read_off_the_result() -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)
    (refused,) = [each for each in frames("no_api_key") if each["type"] == "result"]

    feed.record(refused)
    found = feed.totals.settle("u1", 1.0, "failed")

    assert isinstance(found.cause, NotLoggedIn)


def test_when_the_cli_is_gone_nothing_runs() -> None:
    feed = Feed()
    feed.record({"type": "system", "subtype": "task_started", "task_id": "a1"}, said(use("t1")))

    feed.totals.cli_lost(9.0)

    assert (feed.totals.running_tasks, feed.totals.calls.running) == ((), ())
    assert [each.state for each in feed.totals.tasks.all] == ["lost"]


@pytest.mark.parametrize("trace", ["subagent_foreground", "subagent_background"])
def test_the_agents_of_a_turn_are_in_its_result(trace: str) -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)
    for frame in frames(trace):
        if not kind_of(frame).startswith(("control_", "stream_event")):
            feed.record(frame)
            if frame["type"] == "result" and "origin" not in frame:
                break

    found = feed.totals.settle("u1", 99.0, "completed")

    (agent,) = found.agents
    assert (agent.description, agent.subagent_type) == ("sub job", "helper")
    assert {call.parent_tool_use_id for call in agent.tool_calls} == {agent.tool_use_id}
    assert agent.is_running == (trace == "subagent_background")


def test_the_api_error_that_ended_a_turn_is_known_before_its_result() -> None:
    feed = Feed()
    feed.totals.open("u1", 0.0)
    feed.totals.open("u2", 0.0)
    feed.record(said(text("API Error: 529"), is_api_error_message=True))
    feed.record(said(text("its own"), is_api_error_message=True, parent_tool_use_id="t"))

    assert feed.totals.api_failure("u1") == "API Error: 529"
    assert [feed.totals.api_failure(uuid) for uuid in ("u2", "nobody")] == ["", ""]


def test_a_cause_is_read_off_the_last_result_or_off_the_outcome_alone() -> None:
    feed = Feed()
    feed.record(result(0.0, is_error=True, api_error_status=529, result="overloaded"))

    told = feed.totals.cause_for("failed", has_result=True)
    alone = feed.totals.cause_for("interrupted", has_result=False)

    assert isinstance(told, ApiFailed)
    assert isinstance(alone, TurnStopped)
    assert alone.why == "interrupted"
    assert feed.totals.cause_for("completed", has_result=False) is None


def test_a_main_agent_has_the_state_and_the_start_of_its_session() -> None:
    tree = Feed().totals.agents("idle", 3.0)

    assert (tree.agent_id, tree.state, tree.started, tree.ended) == ("", "idle", 3.0, None)
