from __future__ import annotations

import json
from typing import Any

from steersman.journal import Entry, Kind
from steersman.journal.decisions import recorded_calls
from steersman.permissions import Place, RecordedCall, ToolCall
from tests.samples import Frame


def message(frame: Frame) -> Entry:
    return Entry(1, 0.0, Kind.MESSAGE, json.dumps(frame).encode())


def init(**fields: Any) -> Entry:
    return message({"type": "system", "subtype": "init", **fields})


def called(tool_use_id: str, command: str, **fields: Any) -> Entry:
    use = {"type": "tool_use", "id": tool_use_id, "name": "Bash", "input": {"command": command}}
    return message({"type": "assistant", "message": {"id": "m", "content": [use]}, **fields})


def ended(tool_use_id: str, *, is_error: bool = False) -> Entry:
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "is_error": is_error}
    return message({"type": "user", "message": {"content": [block]}})


def decided(tool_use_id: str, verdict: str, **details: str) -> Entry:
    return Entry(
        1, 0.0, Kind.DECIDED, details={"tool_use_id": tool_use_id, "verdict": verdict, **details}
    )


def bash(command: str, **fields: Any) -> ToolCall:
    return ToolCall("Bash", {"command": command}, **fields)


def test_a_call_that_nobody_decided_has_run_if_it_did_not_fail() -> None:
    entries = [called("t1", "ls"), called("t2", "rm"), ended("t2", is_error=True), ended("t1")]

    assert recorded_calls(entries) == [
        RecordedCall("t1", bash("ls"), ran=True),
        RecordedCall("t2", bash("rm"), ran=False),
    ]


def test_a_decision_counts_whatever_came_of_the_call() -> None:
    entries = [
        called("t1", "false"),
        decided("t1", "allow", source="person", by="me"),
        ended("t1", is_error=True),
        called("t2", "rm"),
        decided("t2", "deny", source="rule"),
        ended("t2"),
        decided("t9", "allow"),
    ]

    assert recorded_calls(entries) == [
        RecordedCall("t1", bash("false"), ran=True, source="person", by="me"),
        RecordedCall("t2", bash("rm"), ran=False, source="rule", by=""),
    ]


def test_a_call_without_an_end_is_not_recorded() -> None:
    assert recorded_calls([called("t1", "ls"), decided("t1", "allow"), ended("t2")]) == []


def test_a_call_knows_the_mode_the_agent_and_where_the_session_began() -> None:
    entries = [
        init(cwd="/project", permissionMode="plan"),
        called("t1", "ls", subagent_type="helper"),
        init(cwd="/project/below"),
        message({"type": "system", "subtype": "status", "permissionMode": "acceptEdits"}),
        called("t2", "ls"),
        ended("t1"),
        ended("t2"),
    ]

    place = Place("/project")
    assert [each.call for each in recorded_calls(entries)] == [
        bash("ls", agent="helper", mode="plan", place=place),
        bash("ls", mode="acceptEdits", place=place),
    ]
