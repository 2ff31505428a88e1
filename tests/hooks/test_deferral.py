"""Which tools may be deferred until the session is resumed."""

from __future__ import annotations

import pytest

from steersman.hooks import PreToolUse, Reply, allow, defer
from steersman.hooks.reply_checks import DeferralCheck


def write(
    tool_use_id: str = "t1", prompt: str = "p1", tool: str = "Write", agent: str | None = None
) -> PreToolUse:
    return PreToolUse(tool_name=tool, tool_use_id=tool_use_id, prompt_id=prompt, agent_id=agent)


def test_a_tool_of_the_main_agent_may_be_deferred() -> None:
    assert DeferralCheck().objection(write(), defer()) is None


def test_a_cli_that_cannot_wait_for_hooks_on_resume_may_not_defer() -> None:
    check = DeferralCheck(lambda: False)

    assert "before it knows the hooks" in (check.objection(write(), defer()) or "")
    assert check.objection(write(), allow()) is None


def test_a_tool_of_a_subagent_may_not_be_deferred() -> None:
    check = DeferralCheck()

    assert "in a subagent" in (check.objection(write(agent="a1"), defer()) or "")
    assert check.objection(write(agent="a1"), allow()) is None
    assert check.objection(write("t2"), defer()) is None


@pytest.mark.parametrize(
    ("tool", "is_own"),
    [
        ("mcp__bank__pay", True),
        ("mcp__my_bank__pay", True),
        ("mcp__bank__deep__pay", True),
        ("mcp__bankers__pay", False),
        ("mcp__git__push", False),
        ("bank", False),
    ],
)
def test_a_tool_of_this_process_may_not_be_deferred(tool: str, *, is_own: bool) -> None:
    check = DeferralCheck(own_servers=lambda: ("bank", "my.bank"))

    found = check.objection(write(tool=tool), defer())

    assert ("a tool of the program itself" in (found or "")) == is_own


def test_only_one_tool_of_a_turn_may_be_deferred() -> None:
    deferring = DeferralCheck()

    first = deferring.objection(write("t1"), defer())
    again = deferring.objection(write("t1"), defer())
    second = deferring.objection(write("t2"), defer())
    next_turn = deferring.objection(write("t3", "p2"), defer())

    assert (first, again, next_turn) == (None, None, None)
    assert "another tool was deferred" in str(second)


def test_a_deferral_that_is_written_as_a_mapping_is_checked_too() -> None:
    written = {"hookEventName": "PreToolUse", "permissionDecision": "defer"}
    check = DeferralCheck(lambda: False)

    assert check.objection(write(), Reply(hook_specific_output=written)) is not None
    assert check.objection(write(), Reply()) is None
