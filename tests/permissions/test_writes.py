"""In `bypassPermissions` a write that is to be asked about is denied, whatever its path."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.permissions import Policy, ask
from steersman.permissions.rules import EDITING
from steersman.permissions.writes import WRITING, may_write


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "/w/g/hooks/w1"}),
        ("Edit", {"file_path": "/w/a"}),
        ("MultiEdit", {"file_path": "/w/a"}),
        ("NotebookEdit", {"notebook_path": "/w/a"}),
        ("Bash", {"command": "touch g/hooks/w1"}),
        ("Bash", {"command": "mkfifo a"}),
        ("Bash", {"command": "echo a > g/hooks/w1"}),
        ("Bash", {"command": "echo $(touch a)"}),
        ("Bash", {"command": "ls\ntouch a"}),
        ("Bash", {"command": "ls; touch a"}),
        ("Bash", {"command": "less -o a b"}),
        ("Bash", {"command": ""}),
        ("Bash", {"command": ["ls"]}),
        ("Bash", {}),
        ("Bash", {"command": "ls " + "a" * 20_000}),
        ("Monitor", {"command": "touch a"}),
    ],
)
def test_an_asked_write_is_denied_where_the_cli_would_not_ask(
    tool: str, given: dict[str, Any]
) -> None:
    for policy in (Policy(otherwise="ask"), Policy(ask(tool))):
        assert policy.explain(tool, given, mode="bypassPermissions", cwd="/w").verdict == "deny"
        assert policy.explain(tool, given, mode="default", cwd="/w").verdict == "ask"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/w/a"}),
        ("Bash", {"command": "ls -la src"}),
        ("Bash", {"command": "cat a b"}),
        ("mcp__box__ping", {"command": "touch a"}),
        ("WebFetch", {"url": "https://good.test/"}),
    ],
)
def test_other_calls_are_still_asked_about(tool: str, given: dict[str, Any]) -> None:
    assert not may_write(tool, given)
    found = Policy(otherwise="ask").explain(tool, given, mode="bypassPermissions")
    assert found.verdict == "ask"


def test_every_tool_of_rules_about_editing_writes() -> None:
    assert WRITING == EDITING
