"""Edges of `reply_checks`: what a guard may not write, and which input a reply changes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.hooks import (
    AsyncReply,
    Elicitation,
    ElicitationOutput,
    HookEvent,
    PermissionRequest,
    PreToolUse,
    Reply,
    Setup,
    Stop,
    StopOutput,
    TaskCreated,
    allow,
    ask,
    block,
    defer,
    deny,
    modify,
)
from steersman.hooks.replies import ToolVerdict
from steersman.hooks.reply_checks import InvalidReply, changed_input, encode_reply, parse_reply


def about(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


@pytest.mark.parametrize(
    ("event", "given", "unknown"),
    [
        (PreToolUse, {"permissionDecision": "deny"}, "permissionDecision"),
        (PreToolUse, {"async": True, "decision": "block"}, "decision"),
        (PreToolUse, {"async_": True, "reason": "r"}, "reason"),
        (PreToolUse, about("PreToolUse", permission_decision="deny"), "permission_decision"),
        (Setup, about("Setup", additionalContexts="x"), "additionalContexts"),
        (
            PermissionRequest,
            about("PermissionRequest", decision={"behaviour": "deny"}),
            "behaviour",
        ),
        (
            PreToolUse,
            Reply(hook_specific_output={"hookEventName": "PreToolUse", "decision": "deny"}),
            "decision",
        ),
    ],
)
def test_a_key_that_the_cli_would_ignore_is_refused_from_a_guard_only(
    event: type[HookEvent], given: Any, unknown: str
) -> None:
    with pytest.raises(InvalidReply, match=rf"^returned the unknown key '{unknown}' \(from it\)$"):
        parse_reply(event, given, guard="it")

    if unknown != "behaviour":
        assert parse_reply(event, given) is not None


@pytest.mark.parametrize(
    ("event", "given"),
    [
        (PreToolUse, {"suppressOutput": True, "async": False}),
        (PreToolUse, about("PreToolUse", permissionDecision="deny")),
        (PermissionRequest, about("PermissionRequest", decision={"behavior": "deny"})),
        (PreToolUse, Reply(hook_specific_output=about("PreToolUse")["hookSpecificOutput"])),
        (PreToolUse, {}),
    ],
)
def test_a_guard_may_write_every_key_that_the_cli_knows(event: type[HookEvent], given: Any) -> None:
    assert parse_reply(event, given, guard="it") == parse_reply(event, given)


@pytest.mark.parametrize(
    ("event", "given", "changed"),
    [
        (PreToolUse, allow(), ("allow", None)),
        (PreToolUse, allow(updated_input={"a": 1}), ("allow", {"a": 1})),
        (PreToolUse, modify({"a": 1}), (None, {"a": 1})),
        (PreToolUse, deny("no"), ("deny", None)),
        (PreToolUse, {"decision": "approve"}, (None, None)),
        (PreToolUse, block("no"), (None, None)),
        (
            PreToolUse,
            {"decision": "approve", **about("PreToolUse", updatedInput={"a": 1})},
            ("allow", {"a": 1}),
        ),
        (PreToolUse, {"decision": "block", **about("PreToolUse")}, ("deny", None)),
        (
            PreToolUse,
            {"decision": "block", **about("PreToolUse", permissionDecision="allow")},
            ("allow", None),
        ),
        (PermissionRequest, allow(updated_input={"a": 1}), ("allow", {"a": 1})),
        (
            PermissionRequest,
            about("PermissionRequest", decision={"behavior": "allow", "updatedInput": {"a": 1}}),
            ("allow", {"a": 1}),
        ),
        (Stop, Reply(hook_specific_output=StopOutput(additional_context="x")), (None, None)),
    ],
)
def test_a_reply_about_a_tool_has_a_decision_and_perhaps_other_input(
    event: type[HookEvent], given: Any, changed: tuple[str | None, dict[str, Any] | None]
) -> None:
    reply = parse_reply(event, given)

    assert isinstance(reply, Reply)
    assert changed_input(reply) == changed


@pytest.mark.parametrize(
    ("event", "given", "decision"),
    [
        (Elicitation, about("Elicitation", action="accept"), None),
        (Elicitation, Reply(hook_specific_output=ElicitationOutput(action="decline")), "block"),
        (Elicitation, {"decision": "approve", **about("Elicitation", action="decline")}, "approve"),
        (Elicitation, Reply(), None),
        (Stop, about("Stop", action="decline"), None),
    ],
)
def test_only_a_declined_elicitation_is_blocked_too(
    event: type[HookEvent], given: Any, decision: str | None
) -> None:
    reply = parse_reply(event, given)

    assert isinstance(reply, Reply)
    assert reply.decision == decision


def test_a_blocked_permission_request_without_a_reason_says_so() -> None:
    reply = parse_reply(PermissionRequest, Reply(decision="block"))

    assert encode_reply(reply) == (
        b'{"decision":"block","hookSpecificOutput":{"hookEventName":"PermissionRequest",'
        b'"decision":{"behavior":"deny","message":"blocked"}}}'
    )


def test_an_async_reply_and_no_reply_are_sent_as_they_are() -> None:
    later = AsyncReply(async_=True)

    assert parse_reply(PreToolUse, later) is later
    assert encode_reply(None) == b"{}"


@pytest.mark.parametrize(
    ("event", "given", "text"),
    [
        (PreToolUse, "yes", "returned str"),
        (PreToolUse, {"hookSpecificOutput": 5}, "returned int as hookSpecificOutput"),
        (PreToolUse, about("Stop"), "answered 'Stop', not 'PreToolUse'"),
        (
            PreToolUse,
            Reply(hook_specific_output=StopOutput(additional_context="x")),
            "answered with StopOutput",
        ),
        (Stop, ask("?"), "answered ask, which is for PreToolUse"),
        (Stop, defer(), "answered defer, which is for PreToolUse"),
        (TaskCreated, modify({"a": 1}), "answered with other input, which is for PreToolUse"),
        (
            TaskCreated,
            allow(updated_input={"a": 1}),
            "answered allow, which is for PreToolUse",
        ),
    ],
)
def test_an_invalid_reply_says_what_is_wrong(event: type[HookEvent], given: Any, text: str) -> None:
    with pytest.raises(InvalidReply) as invalid:
        parse_reply(event, given)

    assert str(invalid.value) == text


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"reason": "no"}, "reason"),
        ({"stopReason": "no"}, "stopReason"),
        (about("PreToolUse", permissionDecisionReason="no"), "permissionDecisionReason"),
        (
            Reply(hook_specific_output=ToolVerdict(permission_decision_reason="no")),
            "permissionDecisionReason",
        ),
    ],
)
def test_a_guard_that_gives_a_reason_without_a_decision_has_not_replied(
    given: Any, key: str
) -> None:
    with pytest.raises(
        InvalidReply, match=rf"^returned '{key}' without a decision \(from check\)$"
    ):
        parse_reply(PreToolUse, given, guard="check")

    assert parse_reply(PreToolUse, given) is not None


def test_a_guard_may_not_answer_later() -> None:
    with pytest.raises(InvalidReply, match=r"^returned 'async' \(from check\): .*run_async=True"):
        parse_reply(PreToolUse, {"async": True}, guard="check")


@pytest.mark.parametrize(
    "context",
    [
        about("PreToolUse", additionalContext="x"),
        {"hookSpecificOutput": ToolVerdict(additional_context="x")},
    ],
)
def test_a_guard_that_ends_the_turn_stops_the_tool_too_and_its_context_is_kept(
    context: dict[str, Any],
) -> None:
    reply = Reply(
        continue_=False, stop_reason="enough", hook_specific_output=context["hookSpecificOutput"]
    )

    found = parse_reply(PreToolUse, reply, guard="check")

    assert found == Reply(
        continue_=False,
        stop_reason="enough",
        hook_specific_output=ToolVerdict(
            permission_decision="deny",
            permission_decision_reason="enough",
            additional_context="x",
        ),
    )


def test_a_guard_that_ends_the_turn_without_a_word_says_who_did() -> None:
    found = parse_reply(Stop, {"continue": False}, guard="check")

    assert found == Reply(continue_=False, decision="block", reason="stopped by a hook")
