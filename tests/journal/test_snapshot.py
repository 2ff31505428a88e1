from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from steersman.journal import Phase
from steersman.journal.snapshot import (
    PendingPermission,
    PendingToolCall,
    Retrying,
    SessionSnapshot,
    describe,
)
from steersman.journal.tasks import Task

NOW = 1000.0


def call(name: str, seconds: float) -> PendingToolCall:
    return PendingToolCall(tool_use_id=name, name=name, started=NOW - seconds)


def asked(seconds: float, request_id: str = "q1") -> PendingPermission:
    return PendingPermission(request_id=request_id, since=NOW - seconds)


def agent(task_id: str, task_type: str = "local_agent", *, is_background: bool = True) -> Task:
    return Task(task_id=task_id, started=1.0, task_type=task_type, is_background=is_background)


RUNNING: dict[str, Any] = {"phase": Phase.RUNNING, "since": NOW - 7}
RETRY = Retrying(attempt=3, most=10, until=NOW + 8)

LINES: list[tuple[str, dict[str, Any]]] = [
    ("idle", {}),
    ("starting", {"phase": Phase.STARTING}),
    ("completed", {"phase": Phase.COMPLETED, "tasks": (agent("a"),)}),
    ("failed", {"phase": Phase.FAILED}),
    ("cancelled", {"phase": Phase.CANCELLED}),
    ("paused", {"phase": Phase.PAUSED}),
    ("working 7 s", RUNNING),
    ("running Bash 12 s", {**RUNNING, "pending_tool_calls": (call("Bash", 12),)}),
    (
        "running Bash and 2 more 12 s",
        {**RUNNING, "pending_tool_calls": (call("Read", 1), call("Bash", 12), call("Grep", 2))},
    ),
    ("retrying 3/10 in 8 s", {**RUNNING, "retrying": RETRY}),
    ("retrying 3/10 now", {**RUNNING, "retrying": dataclasses.replace(RETRY, until=NOW - 1)}),
    ("waiting for you 40 s", {**RUNNING, "pending_permissions": (asked(40),), "retrying": RETRY}),
    (
        "waiting for you 40 s (2 asks)",
        {**RUNNING, "pending_permissions": (asked(10), asked(40, "q2")), "open_asks": ("q1", "q2")},
    ),
    ("waiting for you 7 s", {**RUNNING, "open_asks": ("e1",)}),
    ("waiting for you 5 min", {**RUNNING, "pending_permissions": (asked(300),)}),
    ("waiting for you 3 h", {**RUNNING, "pending_permissions": (asked(3 * 3600),)}),
    ("background: 2 agents", {"tasks": (agent("a"), agent("b"))}),
    ("background: 1 agent and 1 task", {"tasks": (agent("a"), agent("b", "local_bash"))}),
    ("paused; background: 1 task", {"phase": Phase.PAUSED, "tasks": (agent("b", "local_bash"),)}),
    ("idle", {"tasks": (agent("a", is_background=False),)}),
]


@pytest.mark.parametrize(("line", "fields"), LINES)
def test_a_snapshot_is_one_line_for_people(line: str, fields: dict[str, Any]) -> None:
    assert describe(SessionSnapshot(**fields), NOW) == line


def test_a_clock_that_jumped_back_says_nothing_absurd() -> None:
    snapshot = SessionSnapshot(**{**RUNNING, "since": NOW + 50})

    assert describe(snapshot, NOW) == "working 0 s"
