from __future__ import annotations

from collections import UserDict
from typing import Any

import pytest

from steersman import _json
from steersman.hooks import (
    Elicitation,
    ElicitationOutput,
    HookEvent,
    PermissionRequest,
    PostToolUse,
    PostToolUseOutput,
    PreCompact,
    PreModelSwitch,
    PreToolUse,
    Reply,
    SessionEnd,
    Stop,
    StopOutput,
    UserPromptExpansion,
    UserPromptSubmit,
    WorktreeCreateOutput,
    allow,
    ask,
    block,
    context,
    deny,
    modify,
)
from steersman.hooks.reply_checks import InvalidReply, blocking_reply, encode_reply, parse_reply


def wire(event: type[HookEvent], given: object) -> Any:
    return _json.loads(encode_reply(parse_reply(event, given)))


def about(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


REFUSED = {"decision": "block", "reason": "no"}


@pytest.mark.parametrize(
    ("event", "sent"),
    [
        (
            PreToolUse,
            about("PreToolUse", permissionDecision="deny", permissionDecisionReason="no"),
        ),
        (
            PermissionRequest,
            about("PermissionRequest", decision={"behavior": "deny", "message": "no"}),
        ),
        (UserPromptSubmit, REFUSED),
        (UserPromptExpansion, REFUSED),
        (Elicitation, REFUSED),
        (
            PreModelSwitch,
            about("PreModelSwitch", permissionDecision="deny", permissionDecisionReason="no"),
        ),
        (PreCompact, REFUSED),
    ],
)
def test_a_denial_is_sent_in_the_form_that_the_event_needs(
    event: type[HookEvent], sent: dict[str, Any]
) -> None:
    assert _json.loads(encode_reply(blocking_reply(event, "no"))) == sent
    assert wire(event, deny("no")) == sent


@pytest.mark.parametrize(
    ("event", "given", "sent"),
    [
        (PreToolUse, None, {}),
        (PreToolUse, {}, {}),
        (PreToolUse, Reply(), {}),
        (PreToolUse, ask("?"), wire(PreToolUse, ask("?"))),
        (UserPromptSubmit, allow(), {}),
        (
            PermissionRequest,
            allow(updated_input={"a": 1}),
            about("PermissionRequest", decision={"behavior": "allow", "updatedInput": {"a": 1}}),
        ),
        (
            PermissionRequest,
            {"decision": "block", "reason": "r"},
            {
                "decision": "block",
                "reason": "r",
                **about("PermissionRequest", decision={"behavior": "deny", "message": "r"}),
            },
        ),
        (
            Elicitation,
            about("Elicitation", action="decline"),
            {"decision": "block", **about("Elicitation", action="decline")},
        ),
        (
            Elicitation,
            Reply(hook_specific_output=ElicitationOutput(action="cancel")),
            {"decision": "block", **about("Elicitation", action="cancel")},
        ),
        (PreToolUse, context("c"), about("PreToolUse", additionalContext="c")),
        (PostToolUse, context("c"), about("PostToolUse", additionalContext="c")),
        (Stop, block("go on"), {"decision": "block", "reason": "go on"}),
        (Stop, {"continue_": False, "stopReason": "x"}, {"continue": False, "stopReason": "x"}),
        (Stop, {"async_": True}, {"async": True}),
        (Stop, {"async": True, "asyncTimeout": 9}, {"async": True, "asyncTimeout": 9}),
        (Stop, {"reason": None, "hookSpecificOutput": None}, {}),
        (Stop, UserDict({"systemMessage": "m"}), {"systemMessage": "m"}),
        (
            PostToolUse,
            about("PostToolUse", updatedToolOutput="x", notYetKnown=1, additionalContext=None),
            about("PostToolUse", updatedToolOutput="x", notYetKnown=1),
        ),
        (
            PostToolUse,
            Reply(hook_specific_output=PostToolUseOutput(classifier_context="x")),
            about("PostToolUse", classifierContext="x"),
        ),
        (
            Stop,
            Reply(hook_specific_output={"hookEventName": "Stop", "additionalContext": "x"}),
            about("Stop", additionalContext="x"),
        ),
    ],
)
def test_what_a_callback_returns_is_sent_as_the_cli_reads_it(
    event: type[HookEvent], given: Any, sent: dict[str, Any]
) -> None:
    assert wire(event, given) == sent


@pytest.mark.parametrize(
    ("event", "given"),
    [
        (PreToolUse, "yes"),
        (PreToolUse, True),
        (PreToolUse, [1]),
        (PreToolUse, object()),
        (PreToolUse, {"continue": "no"}),
        (PreToolUse, {"decision": "maybe"}),
        (PreToolUse, {"hookSpecificOutput": "x"}),
        (PreToolUse, about("PreToolUse", permissionDecision="never")),
        (PreToolUse, about("PreToolUse", permissionDecision="allow", updatedInput="x")),
        (PreToolUse, about("Stop", additionalContext="x")),
        (PreToolUse, {"hookSpecificOutput": {"permissionDecision": "deny"}}),
        (PreToolUse, {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": [1]}}),
        (PreToolUse, Reply(hook_specific_output=StopOutput(additional_context="x"))),
        (PreToolUse, Reply(hook_specific_output=about("x"))),
        (Stop, Reply(hook_specific_output=StopOutput(additional_context=5))),  # type: ignore[arg-type]
        (Stop, Reply(hook_specific_output=WorktreeCreateOutput(worktree_path="/x"))),
        (SessionEnd, context("too late")),
        (Stop, ask("?")),
        (PostToolUse, modify({"a": 1})),
        (PreToolUse, Reply(reason=object())),  # type: ignore[arg-type]
        (PreToolUse, allow(updated_input={"a": object()})),
        (PermissionRequest, about("PermissionRequest", decision={"behavior": "perhaps"})),
    ],
)
def test_what_the_cli_would_ignore_is_an_invalid_reply(event: type[HookEvent], given: Any) -> None:
    with pytest.raises(InvalidReply):
        wire(event, given)
