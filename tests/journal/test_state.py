from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from steersman.journal import Entry, Kind, Phase
from steersman.journal.snapshot import PendingToolCall, Retrying, SessionSnapshot, Stats
from steersman.journal.state import StateChange, StateFollower, snapshot_of
from steersman.journal.tasks import Task
from steersman.journal.totals import SessionTotals
from tests._protocol.conversations import with_uuids
from tests.samples import Frame, frames, traces


class Feed:
    """A `StateFollower` that is given entries, one second after the other."""

    def __init__(self) -> None:
        self.state = StateFollower()
        self.at = 0.0
        self.changes: list[StateChange] = []

    def append(self, kind: Kind, frame: Frame | None = None, **details: Any) -> None:
        self.at += 1.0
        line = b"" if frame is None else json.dumps(frame).encode()
        change = self.state.follow(Entry(int(self.at), self.at, kind, line, (), details))
        self.changes += [] if change is None else [change]

    def phase(self, before: str, after: str) -> None:
        self.append(Kind.PHASE, before=before, after=after)

    @property
    def history(self) -> list[str]:
        return [change.after for change in self.changes]


def running() -> Feed:
    feed = Feed()
    feed.phase("idle", "starting")
    feed.phase("starting", "idle")
    feed.phase("idle", "running")
    return feed


def question(request_id: str, **fields: Any) -> Frame:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"c": 1}, **fields}
    return {"type": "control_request", "request_id": request_id, "request": request}


def called(request_id: str, number: int, method: str = "tools/call", **params: Any) -> Frame:
    message = {"id": number, "method": method, "params": {"name": "add", **params}}
    request = {"subtype": "mcp_message", "server_name": "lab", "message": message}
    return {"type": "control_request", "request_id": request_id, "request": request}


def answer(request_id: str) -> Frame:
    response = {"subtype": "success", "request_id": request_id, "response": {}}
    return {"type": "control_response", "response": response}


def test_a_session_goes_through_its_phases() -> None:
    feed = running()
    feed.phase("running", "idle")
    feed.phase("idle", "completed")

    assert feed.history == ["starting", "idle", "running", "idle", "completed"]
    assert feed.state.phase is Phase.COMPLETED
    assert (feed.state.started, feed.state.completed) == (1.0, 5.0)
    assert feed.state.since == 5.0


def test_a_question_is_open_until_it_is_answered() -> None:
    feed = running()
    feed.append(Kind.CONTROL, question("q1", agent_id="a1", tool_use_id="t1"))
    (open_one,) = feed.state.permissions.values()

    feed.append(Kind.SENT, answer("q1"))

    assert (open_one.tool_name, open_one.input, open_one.since) == ("Bash", {"c": 1}, 4.0)
    assert (open_one.agent_id, open_one.tool_use_id) == ("a1", "t1")
    assert not feed.state.permissions


def test_what_it_waits_for_is_a_state_in_which_it_runs() -> None:
    feed = running()

    feed.phase("running", "waiting_permission")

    assert feed.state.state == "waiting_permission"
    assert feed.state.phase is Phase.RUNNING
    assert feed.changes[-1] == StateChange(4.0, "running", "waiting_permission")


def test_several_questions_and_calls_may_be_open() -> None:
    feed = running()
    feed.append(Kind.CONTROL, called("r1", 1))
    feed.append(Kind.CONTROL, question("q1"))
    feed.append(Kind.CONTROL, question("q2"))

    feed.append(Kind.SENT, answer("q1"))

    assert set(feed.state.permissions) == {"q2"}
    assert set(feed.state.tool_calls) == {"r1"}


def test_a_state_of_a_later_release_is_passed_over() -> None:
    feed = running()

    feed.phase("running", "dreaming")

    assert feed.state.state == "running"


def test_a_call_tells_whose_it_is() -> None:
    feed = running()
    feed.append(
        Kind.CONTROL, called("r1", 1, arguments={"a": 1}, _meta={"claudecode/toolUseId": "t"})
    )

    (call,) = feed.state.tool_calls.values()

    assert (call.tool_use_id, call.name, call.server) == ("t", "add", "lab")
    assert (call.arguments, call.started, call.is_ours) == ({"a": 1}, 4.0, True)


def test_what_the_cli_takes_back_is_not_waited_for() -> None:
    feed = running()
    feed.append(Kind.CONTROL, question("q1"))
    feed.append(Kind.CONTROL, {"type": "control_cancel_request", "request_id": "q1"})

    feed.append(Kind.CONTROL, called("r1", 7))
    cancelled = called("r2", 0, "notifications/cancelled", requestId=7)
    del cancelled["request"]["message"]["id"]
    feed.append(Kind.CONTROL, cancelled)

    assert not feed.state.permissions
    assert not feed.state.tool_calls


def test_other_questions_of_the_cli_make_nobody_wait() -> None:
    feed = running()
    hook = {"subtype": "hook_callback", "callback_id": "h", "input": {}}
    feed.append(Kind.CONTROL, {"type": "control_request", "request_id": "h1", "request": hook})
    feed.append(Kind.CONTROL, called("r1", 1, "tools/list"))
    feed.append(Kind.CONTROL, {"type": "control_request", "request_id": "x"})
    feed.append(Kind.CONTROL, {"type": "control_response"})

    assert [feed.state.asks, feed.state.tool_calls] == [{}, {}]


def test_an_elicitation_is_an_open_ask() -> None:
    feed = running()
    asked = {"subtype": "elicitation", "mcp_server_name": "lab"}
    feed.append(Kind.CONTROL, {"type": "control_request", "request_id": "e1", "request": asked})
    feed.append(Kind.CONTROL, question("q1"))

    assert feed.state.asks == {"e1": "elicitation", "q1": "can_use_tool"}


@pytest.mark.parametrize("ending", ["over", "restarted"])
def test_nothing_is_open_without_a_cli(ending: str) -> None:
    feed = running()
    feed.append(Kind.CONTROL, question("q1"))
    feed.append(Kind.CONTROL, called("r1", 1))

    if ending == "over":
        feed.phase("running", "failed")
    else:
        feed.append(Kind.RESTARTED)

    state = feed.state
    assert [state.permissions, state.tool_calls, state.asks] == [{}, {}, {}]


@pytest.mark.parametrize("trace", traces())
def test_what_is_open_at_the_end_of_a_recording_is_what_was_not_answered(trace: str) -> None:
    feed = running()
    answered: set[str] = set()
    for side, frame in with_uuids(trace):
        if side == "cli>sdk" and frame["type"].startswith("control_"):
            feed.append(Kind.CONTROL, frame)
        elif side == "sdk>cli" and frame.get("type") == "control_response":
            feed.append(Kind.SENT, frame)
            answered.add(str(frame.get("response", {}).get("request_id")))

    withdrawn = {
        each["request_id"] for each in frames(trace) if each["type"] == "control_cancel_request"
    }
    asked = {
        each["request_id"]
        for each in frames(trace)
        if each["type"] == "control_request" and each["request"]["subtype"] == "can_use_tool"
    }
    assert set(feed.state.permissions) == asked - answered - withdrawn


def test_a_snapshot_has_all_that_is_known() -> None:
    feed, totals = running(), SessionTotals()
    use = [
        {"type": "tool_use", "id": each, "name": name, "input": {"of": each}}
        for each, name in [("t1", "mcp__lab__add"), ("t2", "Bash")]
    ]
    retry = {"attempt": 2, "max_retries": 9, "retry_delay_ms": 500, "error": "overloaded"}
    said: list[tuple[str, Frame]] = [
        ("task_started", {"type": "system", "subtype": "task_started", "task_id": "a1"}),
        ("assistant", {"type": "assistant", "message": {"id": "m", "content": use}}),
        ("result", {"type": "result", "subtype": "success", "total_cost_usd": 0.5}),
        ("api_retry", {"type": "system", "subtype": "api_retry", **retry}),
    ]
    for at, (name, frame) in enumerate(said, 10):
        totals.record(Entry(at, float(at), Kind.MESSAGE, json.dumps(frame).encode()), name)
    totals.open("u1", 9.0)
    totals.settle("u1", 14.0, "completed")
    feed.append(Kind.CONTROL, called("r1", 1, _meta={"claudecode/toolUseId": "t1"}))
    feed.append(Kind.CONTROL, called("r2", 2, arguments={"a": 1}))
    feed.append(Kind.CONTROL, question("q1"))
    feed.phase("running", "waiting_permission")

    found = snapshot_of(feed.state, totals, session_id="s", queued=["u2"])

    assert found == SessionSnapshot(
        state="waiting_permission",
        phase=Phase.RUNNING,
        since=7.0,
        session_id="s",
        pending_tool_calls=(
            pending("t1", "mcp__lab__add", server="lab", started=11.0, is_ours=True),
            pending("t2", "Bash", started=11.0),
            # The CLI has not sent the message with this call yet.
            replace(
                pending("", "add", server="lab", started=5.0, is_ours=True), arguments={"a": 1}
            ),
        ),
        pending_permissions=tuple(feed.state.permissions.values()),
        open_asks=("q1",),
        tasks=(Task(task_id="a1", started=10.0),),
        queued=("u2",),
        retrying=Retrying(attempt=2, most=9, until=13.5, error="overloaded"),
        stats=Stats(started=1.0, tool_calls=2, messages=4, turns=1, cost_usd=0.5),
    )


def pending(tool_use_id: str, name: str, **fields: Any) -> PendingToolCall:
    return PendingToolCall(
        tool_use_id=tool_use_id, name=name, arguments={"of": tool_use_id}, **fields
    )
