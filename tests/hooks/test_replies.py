from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman import _json
from steersman.errors import UsageError
from steersman.hooks import (
    AsyncReply,
    PostToolUseOutput,
    Reply,
    ToolVerdict,
    allow,
    ask,
    block,
    context,
    defer,
    deny,
    modify,
)


def verdict(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


@pytest.mark.parametrize(
    ("reply", "wire"),
    [
        (Reply(), {}),
        (allow(), verdict(permissionDecision="allow")),
        (
            allow(updated_input={"a": 1}),
            verdict(permissionDecision="allow", updatedInput={"a": 1}),
        ),
        (modify({"a": 1}), verdict(updatedInput={"a": 1})),
        (
            deny("not here"),
            verdict(permissionDecision="deny", permissionDecisionReason="not here"),
        ),
        (ask(), verdict(permissionDecision="ask")),
        (ask("sure?"), verdict(permissionDecision="ask", permissionDecisionReason="sure?")),
        (defer(), verdict(permissionDecision="defer")),
        (block("go on"), {"decision": "block", "reason": "go on"}),
        (
            Reply(continue_=False, stop_reason="enough", system_message="note"),
            {"continue": False, "stopReason": "enough", "systemMessage": "note"},
        ),
        (
            Reply(hook_specific_output=ToolVerdict(additional_context="by the way")),
            verdict(additionalContext="by the way"),
        ),
        (
            Reply(hook_specific_output={"hookEventName": "Stop", "new": None}),
            {"hookSpecificOutput": {"hookEventName": "Stop", "new": None}},
        ),
        (
            Reply(hook_specific_output=PostToolUseOutput(updated_mcp_tool_output=[1])),
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedMCPToolOutput": [1]}},
        ),
        (AsyncReply(async_=True, async_timeout=500), {"async": True, "asyncTimeout": 500}),
    ],
)
def test_a_reply_is_written_as_the_cli_reads_it(reply: Any, wire: dict[str, Any]) -> None:
    assert _json.loads(_json.dumps(reply)) == wire


def test_a_reply_may_hold_what_the_model_wrote_even_a_lone_surrogate() -> None:
    reply = allow(updated_input={"command": "echo \ud800"})

    found = _json.loads(_json.dumps(reply))

    assert found["hookSpecificOutput"]["updatedInput"] == {"command": "echo \ud800"}


@pytest.mark.parametrize(
    ("make", "given", "argument"),
    [
        (deny, {"reason": 5}, "reason"),
        (deny, {"reason": None}, "reason"),
        (ask, {"reason": 5}, "reason"),
        (block, {"reason": None}, "reason"),
        (context, {"text": 5}, "text"),
        (modify, {"updated_input": None}, "updated_input"),
        (allow, {"updated_input": "x"}, "updated_input"),
        (Reply, {"decision": "maybe"}, "decision"),
        (Reply, {"continue_": "no"}, "continue_"),
        (ToolVerdict, {"permission_decision": "never"}, "permission_decision"),
        (ToolVerdict, {"updated_input": [1]}, "updated_input"),
        (ToolVerdict, {"additional_context": 5}, "additional_context"),
    ],
)
def test_what_the_cli_could_not_read_is_refused_when_it_is_made(
    make: Callable[..., Any], given: dict[str, Any], argument: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make(**given)

    assert refused.value.argument == argument
