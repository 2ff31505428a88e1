from __future__ import annotations

from typing import Any

import pytest

from steersman.hooks import PreToolUse, Reply, allow, defer
from steersman.hooks.deferral import DeferralCheck, ask_rules


def write(tool_use_id: str = "t1", prompt: str = "p1", tool: str = "Write") -> PreToolUse:
    return PreToolUse(tool_name=tool, tool_use_id=tool_use_id, prompt_id=prompt)


@pytest.mark.parametrize(
    ("rule", "tool"),
    [
        ("Write", "Write"),
        ("Write()", "Write"),
        ("Write(*)", "Write"),
        ("mcp__git", "mcp__git__push"),
        ("mcp__git__*", "mcp__git__push"),
        ("mcp__git__push", "mcp__git__push"),
    ],
)
def test_a_tool_may_be_deferred_if_a_rule_covers_all_its_calls(rule: str, tool: str) -> None:
    assert DeferralCheck([rule]).objection(write(tool=tool), defer()) is None


@pytest.mark.parametrize("rules", [[], ["Bash"], ["Write(/tmp/*)"], ["mcp__gi"], ["Writ"]])
def test_without_such_a_rule_deferring_is_refused_with_a_hint(rules: list[str]) -> None:
    objections = [
        DeferralCheck(rules).objection(write(tool=tool), defer())
        for tool in ("Write", "mcp__git__push")
    ]

    assert all("cannot be deferred" in str(each) for each in objections)
    assert '{"permissions": {"ask": ["Write"]}}' in str(objections[0])


def test_a_cli_that_cannot_wait_for_hooks_on_resume_may_not_defer() -> None:
    check = DeferralCheck(["Write"], lambda: False)

    assert "before it knows the hooks" in (check.objection(write(), defer()) or "")
    assert check.objection(write(), allow()) is None


def test_other_replies_need_no_rule() -> None:
    assert DeferralCheck([]).objection(write(), allow()) is None


def test_only_one_tool_of_a_turn_may_be_deferred() -> None:
    deferring = DeferralCheck(["Write"])

    first = deferring.objection(write("t1"), defer())
    again = deferring.objection(write("t1"), defer())
    second = deferring.objection(write("t2"), defer())
    next_turn = deferring.objection(write("t3", "p2"), defer())

    assert (first, again, next_turn) == (None, None, None)
    assert "another tool was deferred" in str(second)


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ({"permissions": {"ask": ["Write", 5]}}, ("Write",)),
        ('{"permissions": {"ask": ["Write"]}}', ("Write",)),
        ("{broken", ()),
        ("/a/path.json", ()),
        (None, ()),
        ({"permissions": []}, ()),
        ({"permissions": {"ask": "Write"}}, ()),
        ({}, ()),
    ],
)
def test_rules_are_found_in_settings_that_are_given_as_such(
    settings: Any, rules: tuple[str, ...]
) -> None:
    assert ask_rules(settings) == rules
    assert ask_rules(settings, {"permissions": {"ask": ["Bash"]}}) == (*rules, "Bash")


def test_a_deferral_that_is_written_as_a_mapping_needs_a_rule_too() -> None:
    written = {"hookEventName": "PreToolUse", "permissionDecision": "defer"}

    assert DeferralCheck([]).objection(write(), Reply(hook_specific_output=written)) is not None
    assert DeferralCheck([]).objection(write(), Reply()) is None
