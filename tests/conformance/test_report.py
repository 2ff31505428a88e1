"""The table and the JSON of a report."""

from __future__ import annotations

import json
from typing import Any

from steersman_conformance.checks import Check, Kind
from steersman_conformance.report import Report
from steersman_conformance.verdicts import Baseline, judge

BASELINE = Baseline("2.1.1", {"fine": 1, "gone": 1, "odd": 1, "lacking": 0})


def report(**observed: Any) -> Report:
    kinds = {"fine": Kind.MUST, "odd": Kind.CANARY}

    def check(name: str) -> Check[Any]:
        kind = kinds.get(name, Kind.FEATURE)
        return Check(name, f"It is {name}.", kind, "5", 1, lambda _: 0, 0, "we cope")

    findings = [
        judge(check(name), seen, BASELINE, version="2.1.1") for name, seen in observed.items()
    ]
    return Report("/bin/claude", "2.1.1", "2.1.1", 3.2, findings)


def test_a_good_report_tells_what_holds_and_what_is_worked_around() -> None:
    told = list(report(fine=1, odd=1, lacking=0).lines(80))

    assert told == [
        "Claude Code CLI 2.1.1: /bin/claude",
        "3 checks in 3 s, compared with its own baseline 2.1.1",
        "",
        "holds (1)",
        "  5     fine",
        "",
        "absent, handled: features that this version lacks (1)",
        "  5     lacking",
        "        It is lacking.",
        "        without it: we cope",
        "",
        "worked around: faults that this version still has (1)",
        "  5     odd",
        "        It is odd.",
        "        so: we cope",
        "",
        "OK: 1 holds, 1 absent, handled, 1 worked around.",
    ]


def test_a_bad_report_ends_with_the_names_of_what_is_bad() -> None:
    bad = report(fine=2, odd=0, gone=0)

    assert not bad.is_good
    *_, last = bad.lines(100)
    assert last == "FAILED: 1 FIXED, 1 CHANGED, 1 BROKEN: fine, gone, odd"
    assert "        saw      2" in list(bad.lines(80))


def test_no_line_is_wider_than_was_asked_for() -> None:
    wide = report(fine=["word " * 40] * 9, odd=0, gone="x " * 300)

    assert max(map(len, wide.lines(80))) <= 80


def test_machines_are_told_everything() -> None:
    told = json.loads(report(fine=1, gone=0).json())

    assert (told["ok"], told["version"], told["baseline"]) == (False, "2.1.1", "2.1.1")
    assert told["checks"][1] == {
        "name": "gone",
        "kind": "feature",
        "section": "5",
        "states": "It is gone.",
        "verdict": "changed",
        "expected": 1,
        "observed": 0,
        "recorded": 1,
        "remedy": "we cope",
    }
