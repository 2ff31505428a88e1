"""Spellings of one call, compared with what the stock CLI was seen to stop.

`tests/live/test_policy_spellings.py` sees it, and says how to record it again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steersman.permissions import Policy, ask, deny
from tests.permissions.spellings import FILE_COMMANDS, SPELLINGS

SEEN = json.loads((Path(__file__).parents[1] / "samples" / "stopped_commands.json").read_bytes())
POLICIES = {
    "deny": Policy(deny("Bash(mkfifo *)")),
    "ask": Policy(ask("Bash(mkfifo *)")),
    "forbid": Policy(forbid=["Bash(mkfifo *)"]),
}


def runs(policy: Policy, line: str) -> bool:
    found = policy.explain("Bash", {"command": line}, cwd="/project", home="/home/me")
    return found.verdict not in ("ask", "deny")


@pytest.mark.parametrize("name", POLICIES)
def test_no_spelling_of_a_call_runs_unasked(name: str) -> None:
    assert [line for line in SPELLINGS if runs(POLICIES[name], line)] == []


def test_the_record_is_of_the_spellings_and_has_many_that_the_cli_stops() -> None:
    stopped = SEEN["spellings"]

    assert set(stopped["stopped by deny"]) | set(stopped["stopped by ask"]) <= {*SPELLINGS}
    assert set(SEEN["files"]["stopped by deny"]) <= {*FILE_COMMANDS}
    assert len(set(SPELLINGS)) >= 150
    assert len(stopped["stopped by deny"]) >= 74
