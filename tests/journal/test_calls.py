from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.journal.calls import ToolCallRecord, ToolCallTracker, server_of, tool_ends_in
from steersman.messages import Message, parse_message
from tests.samples import frames, traces


def asked(*uses: tuple[str, str], parent: str | None = None, **fields: Any) -> Message:
    content = [{"type": "tool_use", "id": a, "name": b, "input": {"n": a}} for a, b in uses]
    body = {"id": "m", "content": content}
    return parse_message(
        {"type": "assistant", "message": body, "parent_tool_use_id": parent, **fields}
    )


def answered(*results: tuple[str, bool | None], **fields: Any) -> Message:
    content = [{"type": "tool_result", "tool_use_id": a, "is_error": b} for a, b in results]
    return parse_message({"type": "user", "message": {"content": content}, **fields})


def test_a_call_has_its_server_its_input_and_its_time() -> None:
    tracker = ToolCallTracker()

    (begun,) = tracker.record(asked(("t1", "mcp__lab__add_up")), 10.0)
    (ended,) = tracker.record(answered(("t1", None)), 12.5)

    assert begun == ToolCallRecord(
        tool_use_id="t1", name="mcp__lab__add_up", server="lab", input={"n": "t1"}, started=10.0
    )
    assert begun.is_running
    assert (ended.duration, ended.is_error, ended.is_running) == (2.5, False, False)
    assert tracker.all == (ended,)


def test_parallel_calls_end_each_in_its_own_time() -> None:
    tracker = ToolCallTracker()
    tracker.record(asked(("t1", "Bash"), ("t2", "Read")), 1.0)
    tracker.record(asked(("t3", "Bash")), 2.0)

    tracker.record(answered(("t3", True)), 3.0)
    tracker.record(answered(("t1", False)), 6.0)

    assert [(each.tool_use_id, each.duration, each.is_error) for each in tracker.all] == [
        ("t1", 5.0, False),
        ("t2", None, None),
        ("t3", 1.0, True),
    ]
    assert [each.tool_use_id for each in tracker.running] == ["t2"]
    assert tracker.count == 3


def test_a_subagents_calls_tell_whose_they_are() -> None:
    tracker = ToolCallTracker()

    tracker.record(asked(("t2", "Bash"), parent="t1"), 1.0)
    tracker.record(answered(("t2", None), agent_id="a1", parent_tool_use_id="t1"), 2.0)

    assert [(each.parent_tool_use_id, each.agent_id) for each in tracker.all] == [("t1", "a1")]


def test_a_clock_that_jumps_back_makes_no_negative_time() -> None:
    tracker = ToolCallTracker()
    tracker.record(asked(("t1", "Bash")), 10.0)

    (ended,) = tracker.record(answered(("t1", None)), 5.0)

    assert ended.duration == 0.0


def test_what_is_told_twice_counts_once() -> None:
    tracker = ToolCallTracker()
    for message in (asked(("t1", "Bash")), asked(("t1", "Bash")), answered(("t1", None))):
        tracker.record(message, 1.0)

    assert tracker.record(answered(("t1", None)), 9.0) == []
    assert tracker.count == 1


def test_results_of_nobody_and_api_errors_are_no_calls() -> None:
    tracker = ToolCallTracker()

    assert tracker.record(answered(("unknown", None)), 1.0) == []
    assert tracker.record(asked(("t1", "Bash"), is_api_error_message=True), 1.0) == []
    assert tracker.record(parse_message({"type": "user", "message": {"content": "hi"}}), 1.0) == []
    assert tracker.all == ()


def test_a_long_session_forgets_old_calls_and_still_counts_them() -> None:
    tracker = ToolCallTracker(kept=10)
    for n in range(100):
        tracker.record(asked((f"t{n}", "Bash")), float(n))
        tracker.record(answered((f"t{n}", None)), float(n))

    assert [each.tool_use_id for each in tracker.all] == [f"t{n}" for n in range(90, 100)]
    assert tracker.count == 100


def test_large_inputs_are_forgotten_sooner() -> None:
    tracker = ToolCallTracker(kept_bytes=5_000)
    for n in range(10):
        tracker.record(asked((f"t{n}", "x" * 1_000)), float(n))
        tracker.record(answered((f"t{n}", None)), float(n))

    assert [each.tool_use_id for each in tracker.all] == ["t6", "t7", "t8", "t9"]


@pytest.mark.parametrize("trace", traces())
def test_answers_are_found_without_decoding_them(trace: str) -> None:
    read, looked = ToolCallTracker(), ToolCallTracker()
    for at, frame in enumerate(frames(trace)):
        message = parse_message(frame)
        read.record(message, float(at))
        if frame["type"] == "user":
            looked.end(tool_ends_in(json.dumps(frame).encode()), float(at))
        else:
            looked.record(message, float(at))

    assert looked.all == read.all


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (b'{"type":"user","message":{"content":"tool_result"}}', []),
        (b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":5}]}}', []),
        (
            b'{"type":"user","message":{"content":[7,{"type":"tool_result","tool_use_id":"t1"}]}}',
            ["t1"],
        ),
    ],
)
def test_strange_answers_stop_nobody(line: bytes, ends: list[str]) -> None:
    assert [each.tool_use_id for each in tool_ends_in(line)] == ends


def test_when_the_cli_goes_nothing_runs_any_more() -> None:
    tracker = ToolCallTracker()
    tracker.record(asked(("t1", "Bash")), 1.0)

    lost = tracker.close()

    assert [each.tool_use_id for each in lost] == ["t1"]
    assert tracker.running == ()


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("Bash", None),
        ("mcp__lab__add", "lab"),
        ("mcp__my_lab__add__two", "my_lab"),
        ("mcp__lab", None),
        ("", None),
    ],
)
def test_the_server_stands_in_the_name(name: str, server: str | None) -> None:
    assert server_of(name) == server


@pytest.mark.parametrize("trace", traces())
def test_every_recorded_result_ends_a_recorded_call(trace: str) -> None:
    tracker = ToolCallTracker()
    for at, frame in enumerate(frames(trace)):
        tracker.record(parse_message(frame), float(at))

    uses, results = set[str](), set[str]()
    for frame in frames(trace):
        content = frame["message"]["content"] if frame["type"] in ("assistant", "user") else []
        for block in content if isinstance(content, list) else ():
            uses |= {block["id"]} if block["type"] == "tool_use" else set()
            results |= {block["tool_use_id"]} if block["type"] == "tool_result" else set()
    assert {each.tool_use_id for each in tracker.all} == uses
    assert {each.tool_use_id for each in tracker.running} == uses - results
