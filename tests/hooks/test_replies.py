from __future__ import annotations

from typing import Any

import pytest

from steersman import _json
from steersman.hooks import Reply, ToolVerdict, allow, deny


@pytest.mark.parametrize(
    ("reply", "wire"),
    [
        (Reply(), {}),
        (
            allow(),
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "allow",
                }
            },
        ),
        (
            allow(updated_input={"a": 1}),
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "allow",
                    "updatedInput": {"a": 1},
                }
            },
        ),
        (
            deny("not here"),
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "not here",
                }
            },
        ),
        (
            Reply(continue_=False, stop_reason="enough", system_message="note"),
            {"continue": False, "stopReason": "enough", "systemMessage": "note"},
        ),
        (Reply(decision="block", reason="no"), {"decision": "block", "reason": "no"}),
        (
            Reply(hook_specific_output=ToolVerdict(additional_context="by the way")),
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "additionalContext": "by the way",
                }
            },
        ),
        (
            Reply(hook_specific_output={"hookEventName": "Stop", "new": None}),
            {"hookSpecificOutput": {"hookEventName": "Stop", "new": None}},
        ),
    ],
)
def test_a_reply_is_written_as_the_cli_reads_it(reply: Reply, wire: dict[str, Any]) -> None:
    assert _json.loads(_json.dumps(reply)) == wire


def test_a_reply_may_hold_what_the_model_wrote_even_a_lone_surrogate() -> None:
    reply = allow(updated_input={"command": "echo \ud800"})

    found = _json.loads(_json.dumps(reply))

    assert found["hookSpecificOutput"]["updatedInput"] == {"command": "echo \ud800"}
