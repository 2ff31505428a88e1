"""A guard that does not clearly allow the action stops it: misplaced verdicts, late answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from msgspec import Raw

from steersman import _json
from steersman._protocol.connection import Connection
from steersman._protocol.events import Event, HookAsked, Unanswerable
from steersman._session.gate import Gate
from steersman._session.requests.hooks import CLEANING_UP, HookRunner
from steersman._session.requests.permissions import PermissionResponder, UserCallbacks
from steersman._session.requests.responder import Responder
from steersman._session.requests.tool_servers import ToolServers
from steersman.hooks import (
    AsyncReply,
    HookEvent,
    Hooks,
    PermissionRequest,
    PostToolUse,
    PreToolUse,
    Reply,
    UserPromptSubmit,
    context,
    modify,
)
from steersman.hooks.replies import ToolVerdict
from steersman.testing.faults import VirtualClockLoop
from tests._session.requests.test_hooks import denied, on, runner_of

LIMIT = 5.0


def about(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


MISPLACED: list[tuple[type[HookEvent], dict[str, Any], str]] = [
    (PreToolUse, {"permissionDecision": "deny"}, "permissionDecision"),
    (PreToolUse, {"behavior": "deny", "message": "no"}, "behavior"),
    (PreToolUse, {"hook_specific_output": about("PreToolUse")}, "hook_specific_output"),
    (PreToolUse, {"Decision": "block"}, "Decision"),
    (PreToolUse, {"permissionDecision": None}, "permissionDecision"),
    (PreToolUse, about("PreToolUse", permissionDecison="deny"), "permissionDecison"),
    (PreToolUse, about("PreToolUse", permission_decision="deny"), "permission_decision"),
    (PreToolUse, about("PreToolUse", decision={"behavior": "deny"}), "decision"),
    (PreToolUse, {"async": True, "decision": "block"}, "decision"),
    (PreToolUse, {"async_": True, **about("PreToolUse")}, "hookSpecificOutput"),
    (UserPromptSubmit, {"block": True}, "block"),
    (UserPromptSubmit, about("UserPromptSubmit", decision="block"), "decision"),
    (
        PermissionRequest,
        about("PermissionRequest", decision={"behavior": "allow", "interupt": True}),
        "interupt",
    ),
]


@pytest.mark.parametrize(("event", "given", "key"), MISPLACED, ids=str)
async def test_an_unknown_key_in_the_reply_of_a_guard_stops_the_action_and_is_named(
    event: type[HookEvent], given: dict[str, Any], key: str
) -> None:
    def my_guard(_event: HookEvent) -> dict[str, Any]:
        return given

    _, faults, ask = runner_of(on(event, my_guard))

    answer = await ask(event())

    assert is_blocking(event, answer)
    ((where, text),) = faults
    assert where == f"{event.__name__} hook my_guard"
    assert repr(key) in text
    assert "my_guard" in text


def is_blocking(event: type[HookEvent], answer: dict[str, Any]) -> bool:
    specific = answer.get("hookSpecificOutput", {})
    found: dict[type[HookEvent], bool] = {
        PreToolUse: specific.get("permissionDecision") == "deny",
        PermissionRequest: specific.get("decision", {}).get("behavior") == "deny",
        UserPromptSubmit: answer.get("decision") == "block",
    }
    return found[event]


async def test_every_key_that_the_cli_reads_is_accepted_from_a_guard() -> None:
    given = {
        "continue_": True,
        "suppressOutput": False,
        "stopReason": "s",
        "systemMessage": "m",
        "terminalSequence": "t",
        "async_": False,
        "asyncTimeout": None,
        **about(
            "PreToolUse",
            permissionDecision="allow",
            permissionDecisionReason="r",
            updatedInput={"anything": {"at": "all"}},
            additionalContext="c",
        ),
    }
    _, faults, ask = runner_of(on(PreToolUse, lambda _: given))

    answer = await ask(PreToolUse())

    assert answer["hookSpecificOutput"] == given["hookSpecificOutput"]
    assert faults == []


async def test_an_adviser_may_use_keys_that_this_release_does_not_know() -> None:
    given = about("PostToolUse", notYetKnown=1)
    _, faults, ask = runner_of(on(PostToolUse, lambda _: {**given, "alsoNew": 1}))

    assert (await ask(PostToolUse()), faults) == (given, [])


# Replies without a verdict

UNDECIDED: list[tuple[Any, str]] = [
    ({"async": True}, "async"),
    ({"async_": True, "asyncTimeout": 9}, "async"),
    (AsyncReply(async_=True), "async"),
    ({"reason": "not here"}, "reason"),
    (Reply(reason="not here"), "reason"),
    ({"stopReason": "not here"}, "stopReason"),
]


@pytest.mark.parametrize("event", [PreToolUse, PermissionRequest, UserPromptSubmit])
@pytest.mark.parametrize(("given", "key"), UNDECIDED, ids=str)
async def test_a_guard_that_leaves_its_verdict_out_stops_the_action_and_is_named(
    event: type[HookEvent], given: Any, key: str
) -> None:
    def my_guard(_event: HookEvent) -> Any:
        return given

    _, faults, ask = runner_of(on(event, my_guard))

    answer = await ask(event())

    assert is_blocking(event, answer)
    ((where, text),) = faults
    assert where == f"{event.__name__} hook my_guard"
    assert repr(key) in text
    assert "my_guard" in text


@pytest.mark.parametrize(
    "given",
    [
        about("PreToolUse", permissionDecisionReason="not here"),
        Reply(hook_specific_output=ToolVerdict(permission_decision_reason="not here")),
    ],
)
async def test_a_reason_without_a_decision_stops_the_tool(given: Any) -> None:
    _, faults, ask = runner_of(on(PreToolUse, lambda _: given))

    assert is_blocking(PreToolUse, await ask(PreToolUse()))
    assert "'permissionDecisionReason'" in faults[0][1]


@pytest.mark.parametrize("event", [PreToolUse, PermissionRequest, UserPromptSubmit])
async def test_a_guard_that_ends_the_turn_also_stops_the_action(event: type[HookEvent]) -> None:
    given = {"continue": False, "stopReason": "enough", "systemMessage": "m"}
    _, faults, ask = runner_of(on(event, lambda _: given))

    answer = await ask(event())

    assert is_blocking(event, answer)
    assert {key: answer[key] for key in given} == given
    assert "enough" in str(answer.get("reason", answer.get("hookSpecificOutput")))
    assert faults == []


async def test_what_a_guard_adds_for_the_model_is_kept_when_it_ends_the_turn() -> None:
    given = Reply(continue_=False, hook_specific_output=context("c").hook_specific_output)
    _, _, ask = runner_of(on(PreToolUse, lambda _: given))

    answer = await ask(PreToolUse())

    assert is_blocking(PreToolUse, answer)
    assert answer["hookSpecificOutput"]["additionalContext"] == "c"


@pytest.mark.parametrize(
    "given",
    [
        Reply(),
        {"systemMessage": "m", "suppressOutput": True, "reason": None},
        context("c"),
        modify({"command": "true"}),
        {"continue": False, **about("PreToolUse", permissionDecision="allow")},
        about("PreToolUse", permissionDecision=None),
    ],
    ids=str,
)
async def test_a_guard_without_an_opinion_or_with_a_clear_one_stops_nothing(given: Any) -> None:
    _, faults, ask = runner_of(on(PreToolUse, lambda _: given))

    assert not is_blocking(PreToolUse, await ask(PreToolUse()))
    assert faults == []


# Time


async def swallows(_event: PreToolUse) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


async def swallows_and_allows(_event: PreToolUse) -> dict[str, Any]:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return about("PreToolUse", permissionDecision="allow")


def is_slow(_event: PreToolUse) -> None:
    return


async def is_slow_in_a_coroutine(_event: PreToolUse) -> None:
    return


@pytest.mark.parametrize(
    "guard",
    [swallows, swallows_and_allows, is_slow, is_slow_in_a_coroutine],
    ids=lambda guard: guard.__name__,
)
async def test_what_a_guard_returns_after_its_timeout_does_not_count(
    guard: Callable[..., Any],
) -> None:
    _, faults, ask = runner_of(on(PreToolUse, guard, timeout=1e-9))

    async with asyncio.timeout(LIMIT):
        assert await ask(PreToolUse()) == denied("did not answer within 1e-09 s")

    assert faults == [(f"PreToolUse hook {guard.__name__}", "did not answer within 1e-09 s")]


def test_a_guard_that_goes_on_after_its_timeout_is_answered_for() -> None:
    async def never_ends(_event: PreToolUse) -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if loop.time() > 100:
                    raise

    async def story() -> None:
        runner, faults, _ = runner_of(on(PreToolUse, never_ends, timeout=2.0))
        sent: list[tuple[float, str, Any]] = []

        def send(request_id: str, response: Any) -> None:
            sent.append((loop.time() - began, request_id, _json.loads(bytes(response))))

        began = loop.time()
        task = asyncio.ensure_future(
            runner.answer(HookAsked("r1", "hook_0", PreToolUse(), "t1"), send)
        )
        await asyncio.sleep(60)
        assert sent == [(2.0 + CLEANING_UP, "r1", denied("did not answer within 2 s"))]
        assert faults == [("PreToolUse hook never_ends", "did not answer within 2 s")]
        await asyncio.sleep(100)
        runner.cancel_all()
        await asyncio.wait([task])

    loop = VirtualClockLoop()
    try:
        loop.run_until_complete(story())
    finally:
        loop.close()


# Errors that are no `Exception`


class Unusual(BaseException):
    pass


@pytest.mark.parametrize("error", [Unusual, GeneratorExit, RecursionError])
async def test_a_guard_that_raises_any_error_denies(error: type[BaseException]) -> None:
    def guard(_event: PreToolUse) -> None:
        raise error

    _, faults, ask = runner_of(on(PreToolUse, guard))

    assert await ask(PreToolUse()) == denied(f"raised {error.__name__}")
    assert len(faults) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_guard_that_ends_the_program_denies_first(error: type[BaseException]) -> None:
    def guard(_event: PreToolUse) -> None:
        raise error

    answers: list[Any] = []

    async def story() -> None:
        _, _, ask = runner_of(on(PreToolUse, guard))
        answers.append(await ask(PreToolUse()))
        await asyncio.sleep(LIMIT)

    with pytest.raises(error), asyncio.Runner() as runner:
        runner.run(story())
    assert answers == [denied(f"raised {error.__name__}")]


# Requests that cannot be read


def request(hook: str, given: bytes) -> bytes:
    return (
        b'{"type":"control_request","request_id":"r1","request":{"subtype":"hook_callback",'
        b'"callback_id":"%s","input":%s,"tool_use_id":"t1"}}\n' % (hook.encode(), given)
    )


def nested(depth: int) -> bytes:
    return (
        b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"x","a":'
        + b"[" * depth
        + b"]" * depth
        + b"}}"
    )


def asked_of(line: bytes, event: type[HookEvent] = PreToolUse) -> Event:
    (asked,) = Connection("t", {"hook_0": event}).receive(line)[1:]
    return asked


def responder_of(hooks: Hooks) -> Responder:
    def report(_where: str, _error: BaseException | str) -> None:
        pass

    return Responder(
        PermissionResponder(UserCallbacks(), report),
        HookRunner({f"hook_{n}": hook for n, hook in enumerate(hooks)}, report),
        ToolServers({}, {}, report),
        Gate(),
    )


@pytest.mark.parametrize(
    "given",
    [
        nested(1_100),
        nested(100_000),
        b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":["touch x"]}',
        b'{"hook_event_name":"PreToolUse","tool_name":5,"tool_input":{}}',
        b'"text"',
        b"null",
    ],
    ids=["1,100", "100,000", "input", "name", "text", "null"],
)
async def test_a_guard_is_never_asked_about_an_event_that_cannot_be_read_and_denies(
    given: bytes,
) -> None:
    seen: list[PreToolUse] = []
    asked = asked_of(request("hook_0", given))
    assert isinstance(asked, HookAsked | Unanswerable)

    answer = await responder_of(on(PreToolUse, seen.append)).answer(asked, "s")

    if not seen:
        assert isinstance(answer, Raw)
        assert is_blocking(PreToolUse, _json.loads(bytes(answer)))
    else:
        # This Python decodes the whole event.
        assert "a" in seen[0].tool_input


# Matchers


@pytest.mark.parametrize("matcher", [r"^\w{,4}$", "Ba(?:s)*+h", "(?i)bash", "^Ba"])
async def test_a_hook_with_an_expression_is_called_for_the_tools_that_it_fits(matcher: str) -> None:
    seen: list[str] = []
    hooks = on(PreToolUse, lambda event: seen.append(event.tool_name), matcher=matcher)
    _, _, ask = runner_of(hooks)

    assert await ask(PreToolUse(tool_name="Bash")) == {}
    assert await ask(PreToolUse(tool_name="NotebookEdit")) == {}
    assert seen == ["Bash"]


@pytest.mark.parametrize("kind", ["guard", "observe"])
async def test_a_hook_whose_expression_does_not_fit_has_no_opinion(kind: Any) -> None:
    def guard(_event: PreToolUse) -> None:
        raise RuntimeError

    _, faults, ask = runner_of(on(PreToolUse, guard, matcher="^Wri", kind=kind))

    assert (await ask(PreToolUse(tool_name="Bash")), faults) == ({}, [])
