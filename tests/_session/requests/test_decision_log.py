"""Who decided about a tool call, read from the lines of tool results: entries in, entries out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman._json import JsonDict
from steersman._session.link import StderrTail
from steersman._session.requests.decision_log import DecisionLog
from steersman.journal import Entry, Kind


class Written:
    """A decision log, and what it wrote."""

    def __init__(self) -> None:
        self.entries: list[tuple[Kind, JsonDict]] = []
        self.log = DecisionLog(lambda kind, details: self.entries.append((kind, details)))

    def read(self, *blocks: Any, metas: list[Any] | None = None) -> None:
        line = {"type": "user", "message": {"content": list(blocks)}}
        if metas is not None:
            line["tool_result_meta"] = metas
        self.log.record_results(entry(json.dumps(line).encode()))


def entry(line: bytes) -> Entry:
    return Entry(seq=1, at=0.0, kind=Kind.MESSAGE, line=line)


def done(tool_use_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": tool_use_id, **fields}


def meta(tool_use_id: str, decision: str, source: str, reason: str = "") -> dict[str, Any]:
    verdict = {"decision": decision, "source": source, "reason_type": reason}
    return {"id": tool_use_id, "permission_decision": verdict}


@pytest.mark.parametrize(
    ("decision", "source", "reason", "found"),
    [
        ("accept", "hook", "", ("allow", "hook")),
        ("accept", "user_temporary", "", ("allow", "callback")),
        ("reject", "user_reject", "", ("deny", "callback")),
        ("accept", "config", "rule", ("allow", "rule")),
        ("reject", "config", "mode", ("deny", "cli")),
    ],
)
def test_a_decision_of_the_cli_is_recorded_with_its_source(
    decision: str, source: str, reason: str, found: tuple[str, str]
) -> None:
    written = Written()

    written.read(done("t"), metas=[meta("t", decision, source, reason), meta("other", "x", "y")])

    verdict, who = found
    details = {"tool_use_id": "t", "verdict": verdict, "source": who, "reason": reason}
    assert written.entries == [(Kind.DECIDED, details)]


def test_our_own_decision_is_recorded_once_with_what_is_known() -> None:
    written = Written()

    written.log.record("t", "Bash", "allow", "callback", by="ann", reason="r", agent="a")
    written.log.record("u", "Bash", "deny", "rule")
    written.log.record_answer("i", "question", "ann")
    written.read(done("t"), done("u"), metas=[meta("t", "accept", "x"), meta("u", "reject", "x")])

    assert written.entries == [
        (
            Kind.DECIDED,
            {
                "tool_use_id": "t",
                "tool": "Bash",
                "verdict": "allow",
                "source": "callback",
                "by": "ann",
                "reason": "r",
                "agent": "a",
            },
        ),
        (
            Kind.DECIDED,
            {"tool_use_id": "u", "tool": "Bash", "verdict": "deny", "source": "rule"},
        ),
        (
            Kind.DECIDED,
            {"id": "i", "ask": "question", "verdict": "answered", "source": "person", "by": "ann"},
        ),
    ]


def test_a_decision_that_the_cli_overruled_is_recorded_again() -> None:
    written = Written()
    written.log.record("t", "Bash", "allow", "callback")

    written.read(done("t"), metas=[meta("t", "reject", "hook")])

    assert [details["verdict"] for _, details in written.entries] == ["allow", "deny"]


def test_a_tool_that_ran_without_a_decision_is_undecided() -> None:
    written = Written()
    written.log.record("ours", "Bash", "allow", "callback")

    written.read(done("ours"), done("ran"), done("failed", is_error=True), {"type": "text"})

    assert written.entries[1:] == [(Kind.UNDECIDED, {"tool_use_id": "ran"})]


@pytest.mark.parametrize(
    "line",
    [
        b'{"message":{"content":"tool_result"}}',
        b'{"message":{"content":"\\"tool_result\\""}}',
        b'{"message":5,"a":"tool_result"}',
        b'{"a":"tool_result"',
        b'{"message":{"content":[{"type":"text","a":"tool_result"}]}}',
        b'\xff"tool_result"',
    ],
)
def test_a_line_without_a_result_decides_nothing(line: bytes) -> None:
    written = Written()

    written.log.record_results(entry(line))

    assert written.entries == []


def test_the_oldest_open_decisions_are_dropped() -> None:
    written = Written()
    for number in range(10_001):
        written.log.record(str(number), "Bash", "allow", "callback")
    written.entries.clear()

    written.read(done("0"), done("1"))

    assert written.entries == [(Kind.UNDECIDED, {"tool_use_id": "0"})]


def test_the_end_of_stderr_is_kept_and_no_more() -> None:
    tail = StderrTail()
    tail.add(b"a" * 30_000)
    tail.add(b"b" * 10 + b" \n")

    assert tail.text == "a" * (20_480 - 12) + "b" * 10
    tail.add(b"\xff")
    assert tail.text.endswith("\ufffd")
