"""Hooks and `can_use_tool` of the official form: the CLI gets the answers of the official package.

Both packages run the same callbacks against the stand-in CLI, which sends the same requests.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import claude_agent_sdk
import pytest

import steersman.compat
from steersman.compat._callbacks import native_approver, native_hooks
from tests.compat.recording import Line, StandIn

pytestmark = pytest.mark.process

PRE_TOOL_USE = {
    "hook_event_name": "PreToolUse",
    "session_id": "s1",
    "transcript_path": "/t",
    "cwd": "/",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "not_known": 2,
}
DENIED = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
    }
}
DENIES = "deny"
"""Stands for any answer that denies the call."""

REPLIES: dict[str, tuple[object, object]] = {
    "no opinion": ({}, {}),
    "a verdict": (DENIED, DENIED),
    "the turn ends": (
        {"continue_": False, "stopReason": "x"},
        {"continue": False, "stopReason": "x"},
    ),
    "async": ({"async_": True, "asyncTimeout": 5}, {"async": True, "asyncTimeout": 5}),
    "an old verdict": ({"decision": "block", "reason": "r"}, {"decision": "block", "reason": "r"}),
    "a message": (
        {"suppressOutput": True, "systemMessage": "m"},
        {"suppressOutput": True, "systemMessage": "m"},
    ),
    "other input": (
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"a": 1}}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"a": 1}}},
    ),
    "a reason without a verdict": ({"reason": "x"}, {"reason": "x"}),
    "an unknown key": ({"reason": "x", "unknown": 1}, {"reason": "x"}),
    "defaults": ({"continue_": True, "async_": False}, {}),
    "a null": ({"decision": None}, {}),
    "nothing": (None, {}),
    "another event": ({"hookSpecificOutput": {"hookEventName": "Stop"}}, DENIES),
    "a text": ("text", DENIES),
    "not JSON": ({"reason": "x", "systemMessage": object()}, DENIES),
}
"""What a hook returns, and what the CLI gets from ours."""

BETTER = {
    "an unknown key": "the CLI ignores it",
    "defaults": "they are left out",
    "a null": "the CLI refuses a reply with a null",
    "nothing": "no opinion, not an error with which the tool runs",
    "another event": "a guard that fails denies",
    "a text": "a guard that fails denies",
    "not JSON": "a guard that fails denies",
}
"""Replies of which the official package makes something else, and why ours differs."""


def hook_of(reply: object) -> Callable[..., Any]:
    async def hook(*_: Any) -> Any:
        return reply

    return hook


def asks(count: int, **fields: Any) -> list[Line]:
    asked = {"subtype": "hook_callback", "input": PRE_TOOL_USE, "tool_use_id": "t1", **fields}
    return [{"callback_id": f"hook_{number}", **asked} for number in range(count)]


async def replies_of(sdk: ModuleType, stand_in: StandIn) -> dict[str, Any]:
    hooks = [hook_of(given) for given, _ in REPLIES.values()]
    options = {"hooks": {"PreToolUse": [sdk.HookMatcher(hooks=hooks)]}}
    found = await stand_in.run(sdk, options, asks(len(hooks)))
    assert found.error is None
    return dict(zip(REPLIES, (each.get("response") for each in found.answers), strict=True))


async def test_replies_of_hooks_are_those_of_the_official_package(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)

    ours = await replies_of(steersman.compat, stand_in)
    official = await replies_of(claude_agent_sdk, stand_in)

    found = {name: DENIES if _denies(reply) else reply for name, reply in ours.items()}
    wanted = {name: reply for name, (_, reply) in REPLIES.items()}
    assert found == {**wanted, "a verdict": DENIES}
    assert ours["a verdict"] == DENIED
    assert {name for name in REPLIES if ours[name] != official[name]} == set(BETTER)


def _denies(reply: Line) -> bool:
    specific: Line = reply.get("hookSpecificOutput", {})
    return bool(specific.get("permissionDecision") == "deny")


@pytest.mark.parametrize("sdk", [claude_agent_sdk, steersman.compat], ids=["official", "ours"])
async def test_a_hook_gets_three_arguments_whatever_its_signature(
    sdk: ModuleType, tmp_path: Path
) -> None:
    got: list[Any] = []

    async def any_arguments(*args: Any) -> dict[str, Any]:
        got.append(args)
        return {}

    async def defaults(given: Any, tool_use_id: Any = None, context: Any = None) -> dict[str, Any]:
        got.append((given, tool_use_id, context))
        return {}

    matcher = sdk.HookMatcher(hooks=[any_arguments, defaults])
    await StandIn(tmp_path).run(sdk, {"hooks": {"PreToolUse": [matcher]}}, asks(2))

    assert got == [(PRE_TOOL_USE, "t1", {"signal": None})] * 2


def failing(error: BaseException) -> Callable[..., Any]:
    async def fail(*_: Any) -> Any:
        raise error

    return fail


async def test_a_failing_guard_denies_unless_on_failure_is_continue(tmp_path: Path) -> None:
    sdk, fail = steersman.compat, failing(RuntimeError("hush"))
    matchers = [
        sdk.HookMatcher(hooks=[fail]),
        sdk.HookMatcher(hooks=[fail], on_failure="block"),
        sdk.HookMatcher(hooks=[fail], on_failure="continue"),
    ]

    found = await StandIn(tmp_path).run(sdk, {"hooks": {"PreToolUse": matchers}}, asks(3))

    answers = [each["response"] for each in found.answers]
    assert [_denies(each) for each in answers] == [True, True, False]
    assert "hush" not in str(answers)


async def test_a_pattern_is_compared_by_the_cli_as_with_the_official_package(
    tmp_path: Path,
) -> None:
    """The CLI calls this hook for a tool that the pattern does not fit in Python."""
    sdk = steersman.compat
    hook = hook_of(DENIED)
    options: Line = {"hooks": {"PreToolUse": [sdk.HookMatcher(matcher="^Wri.*", hooks=[hook])]}}

    found = await StandIn(tmp_path).run(sdk, options, asks(1))

    assert found.initialize["hooks"]["PreToolUse"][0]["matcher"] == "^Wri.*"
    assert [each["response"] for each in found.answers] == [DENIED]


# Permissions


ASKED = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "input": {"command": "ls"},
    "tool_use_id": "t1",
    "permission_suggestions": [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "ls"}],
            "behavior": "allow",
            "destination": "localSettings",
        },
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        {"type": "not known", "other": 1},
    ],
    "blocked_path": "/b",
    "decision_reason": "why",
    "title": "T",
    "display_name": "D",
    "description": "d",
    "agent_id": "a1",
    "not_known": 1,
}
LEAST = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}


def results_of(sdk: ModuleType) -> list[Any]:
    update, rule = sdk.PermissionUpdate, sdk.types.PermissionRuleValue
    updates = [
        update(
            type="addRules",
            rules=[rule("Bash"), rule("Read", "x")],
            behavior="allow",
            destination="session",
        ),
        update(type="setMode", mode="plan"),
        update(type="addDirectories", directories=["/x"], destination="localSettings"),
    ]
    return [
        sdk.PermissionResultAllow(),
        sdk.PermissionResultAllow(updated_input={"command": "pwd"}),
        sdk.PermissionResultAllow(updated_input={}),
        sdk.PermissionResultAllow(updated_permissions=updates),
        sdk.PermissionResultDeny(),
        sdk.PermissionResultDeny(message="no"),
        sdk.PermissionResultDeny(message="no", interrupt=True),
    ]


async def decided(sdk: ModuleType, stand_in: StandIn, results: list[Any]) -> list[Line]:
    waiting = iter(results)

    async def can_use_tool(*_: Any) -> Any:
        return next(waiting)

    options = {"can_use_tool": can_use_tool}
    found = await stand_in.run(sdk, options, [LEAST] * len(results))
    assert found.error is None
    return [{**each, "request_id": ""} for each in found.answers]


async def test_permission_results_are_those_of_the_official_package(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)

    ours = await decided(steersman.compat, stand_in, results_of(steersman.compat))
    official = await decided(claude_agent_sdk, stand_in, results_of(claude_agent_sdk))

    assert ours == official
    assert len(ours) == 7


async def test_the_context_of_a_request_is_that_of_the_official_package(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    shown: list[list[str]] = []

    for sdk in (claude_agent_sdk, steersman.compat):
        got: list[str] = []

        async def can_use_tool(name: str, given: Any, context: Any, got: Any = got) -> Any:
            got.append(f"{name} {given} {context}")
            return steersman.compat.PermissionResultDeny()

        await stand_in.run(sdk, {"can_use_tool": can_use_tool}, [ASKED, LEAST])
        shown.append(got)

    assert shown[0] == shown[1]
    assert len(shown[1]) == 2


async def test_whatever_is_no_permission_result_denies(tmp_path: Path) -> None:
    """The official package answers with an error, with the text of the exception."""
    given = [None, {"behavior": "allow"}, True, "allow"]

    answers = await decided(steersman.compat, StandIn(tmp_path), given)

    assert [each["response"]["behavior"] for each in answers] == ["deny"] * len(given)


async def test_allowing_a_question_without_an_answer_denies_it(tmp_path: Path) -> None:
    """The official package sends the approval as it is."""
    question = {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}
    asked = {**LEAST, "tool_name": "AskUserQuestion", "input": {"questions": [question]}}
    answered = {"questions": [question], "answers": {"Which?": "a"}}
    results = iter([None, answered])

    async def can_use_tool(*_: Any) -> Any:
        return steersman.compat.PermissionResultAllow(updated_input=next(results))

    options = {"can_use_tool": can_use_tool}
    found = await StandIn(tmp_path).run(steersman.compat, options, [asked, asked])

    denied, allowed = (each["response"] for each in found.answers)
    assert denied["behavior"] == "deny"
    assert allowed == {"behavior": "allow", "updatedInput": answered}


async def test_a_failing_permission_callback_denies_without_its_text(tmp_path: Path) -> None:
    options = {"can_use_tool": failing(ValueError("hush"))}

    found = await StandIn(tmp_path).run(steersman.compat, options, [LEAST])

    assert found.answers[0]["response"]["behavior"] == "deny"
    assert "hush" not in str(found.answers)


async def test_plain_functions_work_as_callbacks(tmp_path: Path) -> None:
    """The official package answers with an error: it awaits what they return."""
    sdk: Any = steersman.compat

    def allow(*_: Any) -> Any:
        return sdk.PermissionResultAllow()

    def deny(*_: Any) -> Any:
        return DENIED

    hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[deny])]}
    options = {"can_use_tool": allow, "hooks": hooks}

    found = await StandIn(tmp_path).run(sdk, options, [LEAST, *asks(1)])

    behavior, reply = (each["response"] for each in found.answers)
    assert (behavior["behavior"], reply) == ("allow", DENIED)


# Where callbacks run


async def test_callbacks_are_called_by_the_function_of_the_client() -> None:
    called: list[object] = []

    async def call(function: Any, *args: Any) -> Any:
        called.append(args)
        return await function(*args)

    async def hook(*_: Any) -> Any:
        return {}

    sdk = steersman.compat
    (registered,) = native_hooks({"Stop": [sdk.HookMatcher(hooks=[hook])]}, call)
    await registered.callback("input", "t1", "context")  # type: ignore[misc]

    assert called == [("input", "t1", "context")]
    assert registered.name == "hook"
    assert callable(native_approver(hook, call))


async def test_an_event_that_the_session_makes_has_no_keys_without_a_value() -> None:
    """The CLI leaves them out, but for those that every event has."""
    seen: list[Any] = []

    async def hook(given: Any, *_: Any) -> Any:
        seen.append(given)
        return {}

    matcher = steersman.compat.HookMatcher(hooks=[hook])
    always = {"session_id": "", "transcript_path": "", "cwd": "", "hook_event_name": "SessionEnd"}
    for event in ("SessionEnd", "Stop"):
        (registered,) = native_hooks({event: [matcher]})
        await registered.callback({**always, "reason": "", "model": None, "n": 0}, None, {})  # type: ignore[misc]

    assert seen[0] == {**always, "n": 0}
    assert seen[1] == {**always, "reason": "", "model": None, "n": 0}


async def test_callbacks_see_the_context_variables_of_the_program(tmp_path: Path) -> None:
    variable = contextvars.ContextVar[str]("variable", default="")
    seen: list[str] = []

    async def can_use_tool(*_: Any) -> Any:
        await asyncio.sleep(0)
        seen.append(variable.get())
        return steersman.compat.PermissionResultDeny()

    variable.set("of the program")
    await StandIn(tmp_path).run(steersman.compat, {"can_use_tool": can_use_tool}, [LEAST])

    assert seen == ["of the program"]
