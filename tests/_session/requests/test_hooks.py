"""How hooks are called: kinds, timeouts, cancellation, and events of the session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import Raw

from steersman import _json
from steersman._protocol.events import HookAsked
from steersman._session.requests.hooks import HookRunner, start_outputs
from steersman._struct import set_source
from steersman.errors import TurnStopped
from steersman.hooks import (
    HookEvent,
    HookMatcher,
    Hooks,
    PermissionRequest,
    PostToolUse,
    PreToolUse,
    Reply,
    SessionStart,
    SessionStartOutput,
    UserPromptSubmit,
    context,
    defer,
    deny,
    hooks_from,
    official,
)
from steersman.hooks import allow as let_run
from steersman.journal import Kind
from steersman.journal.replaying import replay
from steersman.permissions import Allow, Deny
from steersman.testing.faults import VirtualClockLoop
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import Frame, FramePeer, entries_of, lifecycle, opened, result

Faults = list[tuple[str, str]]

NEVER = 3600.0


def runner_of(
    hooks: Hooks | Mapping[Any, Any], **given: Any
) -> tuple[HookRunner, Faults, Callable[..., Any]]:
    """Return a `HookRunner`, the faults that it reports, and a function that calls a hook."""
    faults: Faults = []
    registered = dict(enumerate(hooks_from("hooks", hooks)))
    runner = HookRunner(
        {f"hook_{n}": hook for n, hook in registered.items()},
        lambda where, error: faults.append((where, str(error))),
        **given,
    )

    async def ask(event: HookEvent, n: int = 0, tool_use_id: str = "t1") -> Any:
        answer = await runner.answer(HookAsked("r1", f"hook_{n}", event, tool_use_id))
        return _json.loads(bytes(answer))

    return runner, faults, ask


def on(event: type[HookEvent], callback: Callable[..., Any], **given: Any) -> Hooks:
    hooks = Hooks()
    hooks.on(event, **given)(callback)
    return hooks


def denied(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": f"Stopped: the PreToolUse hook {reason}.",
        }
    }


async def hang(*_given: Any) -> None:
    await asyncio.sleep(NEVER)


async def give_up(*_given: Any) -> None:
    raise asyncio.CancelledError


async def run_out(*_given: Any) -> None:
    raise TimeoutError("my own")


def raising(*_given: Any) -> Any:
    raise RuntimeError("secret detail")


@pytest.mark.parametrize(
    ("callback", "how", "fault"),
    [
        (raising, "raised RuntimeError", "secret detail"),
        (run_out, "raised TimeoutError", "my own"),
        (hang, "did not answer within 0.05 s", "did not answer within 0.05 s"),
        (give_up, "was cancelled", "was cancelled"),
        (lambda _: "yes", "did not return a reply", "returned str"),
        (
            lambda _: {"hookSpecificOutput": {"permissionDecision": "allow"}},
            "did not return a reply",
            "answered None, not 'PreToolUse'",
        ),
        (
            lambda _: let_run(updated_input={"a": object()}),
            "did not return a reply",
            "returned a value that is not JSON: Encoding objects of type object is unsupported",
        ),
    ],
)
async def test_a_guard_that_fails_denies_and_the_error_is_reported(
    callback: Callable[..., Any], how: str, fault: str
) -> None:
    _, faults, ask = runner_of(on(PreToolUse, callback, timeout=0.05))

    async with asyncio.timeout(5):
        answer = await ask(PreToolUse(tool_name="Write"))

    assert answer == denied(how)
    assert faults == [(f"PreToolUse hook {callback.__name__}", fault)]


@pytest.mark.parametrize("callback", [raising, hang, lambda _: "yes", lambda _: deny("no")])
async def test_an_observer_decides_nothing_and_its_failure_is_only_reported(
    callback: Callable[..., Any],
) -> None:
    _, _, ask = runner_of(on(PreToolUse, callback, timeout=0.05, kind="observe"))

    async with asyncio.timeout(5):
        assert await ask(PreToolUse()) == {}


@pytest.mark.parametrize("callback", [raising, hang, lambda _: "yes"])
async def test_an_adviser_that_fails_stops_nothing(callback: Callable[..., Any]) -> None:
    _, faults, ask = runner_of(on(PostToolUse, callback, timeout=0.05))

    async with asyncio.timeout(5):
        assert await ask(PostToolUse()) == {}

    assert [where for where, _ in faults] == [f"PostToolUse hook {callback.__name__}"]


async def test_a_guard_that_the_cli_cancels_denies() -> None:
    _, faults, ask = runner_of(on(PreToolUse, hang))
    asking = asyncio.ensure_future(ask(PreToolUse()))
    await asyncio.sleep(0)

    asking.cancel()

    async with asyncio.timeout(5):
        assert await asking == denied("was cancelled")
    assert faults == []


async def test_an_async_hook_is_not_waited_for_and_ends_with_the_session() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work(_event: PreToolUse) -> None:
        begun.set()
        try:
            await asyncio.sleep(NEVER)
        finally:
            ended.set()

    runner, _, ask = runner_of(on(PreToolUse, work, run_async=True))

    async with asyncio.timeout(5):
        assert await ask(PreToolUse()) == {"async": True}
        await begun.wait()
        runner.cancel_all()
        await ended.wait()


async def test_an_official_callback_gets_the_arguments_of_the_official_sdk() -> None:
    seen: list[Any] = []

    async def check(given: Any, tool_use_id: Any, about: Any) -> dict[str, Any]:
        seen.append((given, tool_use_id, about))
        return {"continue_": False, "stopReason": "enough"}

    _, _, ask = runner_of({"PreToolUse": [HookMatcher(matcher="Bash", hooks=[check])]})
    raw = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "new": 1}

    answer = await ask(set_source(PreToolUse(tool_name="Bash"), raw))
    await ask(set_source(PreToolUse(tool_name="Bash"), raw), tool_use_id="")

    assert (answer["continue"], answer["stopReason"]) == (False, "enough")
    assert seen == [(raw, "t1", {"signal": None}), (raw, None, {"signal": None})]


async def test_a_callback_marked_official_gets_them_whatever_its_parameters() -> None:
    seen: list[Any] = []

    @official
    async def with_all(*args: Any) -> dict[str, Any]:
        seen.append(args)
        return {}

    @official
    def with_defaults(given: Any, tool_use_id: Any = None, about: Any = None) -> None:
        seen.append((given, tool_use_id, about))

    raw = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}
    for hook in (with_all, with_defaults):
        for hooks in ({PreToolUse: hook}, {"PreToolUse": [{"hooks": [hook]}]}):
            _, faults, ask = runner_of(hooks)
            await ask(set_source(PreToolUse(tool_name="Bash"), raw))
            assert faults == []

    assert seen == [(raw, "t1", {"signal": None})] * 4


async def test_an_official_permission_callback_gets_the_id_of_the_call_too() -> None:
    seen: list[Any] = []

    async def check(_given: Any, tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        seen.append(tool_use_id)
        return {}

    _, _, ask = runner_of({"PermissionRequest": [HookMatcher(hooks=[check])]})
    await ask(PermissionRequest(tool_name="Bash"), tool_use_id="t7")

    assert seen == ["t7"]


@pytest.mark.parametrize(
    ("tool", "decision", "objections"), [("Write", "defer", 0), ("mcp__own__pay", "deny", 1)]
)
async def test_a_tool_is_deferred_only_if_it_is_not_one_of_this_process(
    tool: str, decision: str, objections: int
) -> None:
    hooks = on(PreToolUse, lambda _: defer())
    _, faults, ask = runner_of(hooks, own_servers=lambda: ("own",))

    answer = await ask(PreToolUse(tool_name=tool))

    assert answer["hookSpecificOutput"]["permissionDecision"] == decision
    assert len(faults) == objections


async def test_of_two_tools_deferred_at_once_the_second_is_denied() -> None:
    _, _, ask = runner_of(on(PreToolUse, lambda _: defer()))

    answers = [
        await ask(PreToolUse(tool_name="Write", prompt_id="p", tool_use_id=each))
        for each in ("t1", "t2")
    ]

    found = [each["hookSpecificOutput"]["permissionDecision"] for each in answers]
    assert found == ["defer", "deny"]


# Events that the session sends to hooks itself


async def test_an_event_of_the_session_reaches_the_hooks_that_match() -> None:
    hooks, seen = Hooks(), list[str]()

    @hooks.on(SessionStart, "startup")
    async def begin(event: SessionStart) -> Reply:
        seen.append(event.source)
        return context("it is Sunday")

    @hooks.on(SessionStart)
    def add_prompt(_event: SessionStart) -> dict[str, Any]:
        output = {"hookEventName": "SessionStart", "initialUserMessage": "hello"}
        return {"hookSpecificOutput": output}

    hooks.on(SessionStart, "resume")(raising)
    hooks.on(SessionStart, "startup", run_async=True)(lambda _: seen.append("async"))
    hooks.on(PreToolUse)(raising)
    runner, faults, _ = runner_of(hooks)

    replies = await runner.run_own(SessionStart(source="startup"))
    await asyncio.sleep(0)

    assert start_outputs(replies) == [
        SessionStartOutput(additional_context="it is Sunday"),
        SessionStartOutput(initial_user_message="hello"),
    ]
    assert sorted(seen) == ["async", "startup"]
    assert faults == []


async def test_an_event_of_the_session_survives_slow_and_broken_hooks() -> None:
    hooks = on(SessionStart, raising)
    hooks.on(SessionStart, timeout=0.05)(hang)
    runner, faults, _ = runner_of(hooks)

    async with asyncio.timeout(5):
        assert await runner.run_own(SessionStart(source="resume")) == []

    assert [where for where, _ in faults] == ["SessionStart hook raising", "SessionStart hook hang"]


# Permissions for which the CLI also calls hooks


async def test_a_permission_waits_for_a_permission_hook_that_runs() -> None:
    may_answer = asyncio.Event()

    async def look(_event: PermissionRequest) -> None:
        await may_answer.wait()

    runner, _, ask = runner_of(on(PermissionRequest, look, matcher="Write"))
    held = asyncio.ensure_future(runner.wait_for_permission_hooks("Write", "t1"))
    asked = asyncio.ensure_future(ask(PermissionRequest(tool_name="Write")))

    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not held.done()
        may_answer.set()
        await asked
        await held


async def test_a_permission_is_not_answered_after_a_hook_has_decided() -> None:
    runner, _, ask = runner_of(on(PermissionRequest, lambda _: deny("no")))
    await ask(PermissionRequest(tool_name="Write"))
    held = asyncio.ensure_future(runner.wait_for_permission_hooks("Write", "t1"))

    done, _ = await asyncio.wait([held], timeout=0.05)

    assert not done
    held.cancel()


async def test_a_hook_that_is_done_delays_no_permission() -> None:
    runner, faults, ask = runner_of(on(PermissionRequest, lambda _: None))
    await ask(PermissionRequest(tool_name="Write"))

    held = asyncio.ensure_future(runner.wait_for_permission_hooks("Write", "t1"))
    await asyncio.sleep(0)

    assert (held.done(), faults) == (True, [])


@pytest.mark.parametrize(
    "hooks",
    [
        on(PermissionRequest, hang, matcher="Bash"),
        on(PermissionRequest, hang, kind="observe"),
        on(PreToolUse, hang),
        Hooks(),
    ],
)
async def test_hooks_that_cannot_decide_delay_no_permission(hooks: Hooks) -> None:
    runner, faults, _ = runner_of(hooks)

    held = asyncio.ensure_future(runner.wait_for_permission_hooks("Write", "t1"))
    await asyncio.sleep(0)

    assert (held.done(), faults) == (True, [])


def test_hooks_that_the_cli_does_not_call_are_not_waited_for_for_ever() -> None:
    async def hold() -> float:
        runner, _, _ = runner_of(on(PermissionRequest, hang))
        begun = asyncio.get_running_loop().time()
        await runner.wait_for_permission_hooks("Write", "t1")
        return asyncio.get_running_loop().time() - begun

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        waited = runner.run(hold())

    assert 0 < waited < 5


def test_a_guard_without_a_timeout_is_answered_for_before_the_cli_lets_the_action_happen() -> None:
    cli_limit = 600.0

    async def took(guard: Callable[..., Any]) -> tuple[list[object], float]:
        sent: list[object] = []
        runner, _, _ = runner_of(on(PreToolUse, guard))
        begun = asyncio.get_running_loop().time()
        asked = HookAsked("r1", "hook_0", PreToolUse(), "t1")
        answering = asyncio.ensure_future(runner.answer(asked, lambda _, reply: sent.append(reply)))
        await asyncio.wait([answering], timeout=cli_limit - 1)
        if answering.done():
            sent.append(answering.result())
        answering.cancel()
        return sent, asyncio.get_running_loop().time() - begun

    async def ignores_its_cancellation(*_: Any) -> None:
        try:
            await hang()
        finally:
            await hang()

    for guard in (hang, ignores_its_cancellation):
        with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
            (reply,), seconds = runner.run(took(guard))
        assert isinstance(reply, Raw)
        assert _json.loads(bytes(reply)) == denied("did not answer within 590 s")
        assert seconds < cli_limit


# In a session


class KeepsAsking:
    """A CLI that calls a permission hook, and does not withdraw `can_use_tool` when it decides."""

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        answered = frame.get("response", {}).get("request_id")
        if frame["type"] == "user":
            about = {"tool_name": "Write", "tool_use_id": "t1"}
            event = {"hook_event_name": "PermissionRequest", "tool_input": {}, **about}
            peer.say(
                lifecycle(frame["uuid"], "started"),
                request("h", subtype="hook_callback", callback_id="hook_0", input=event, **about),
                request("q", subtype="can_use_tool", input={}, **about),
            )
        elif answered == "q":
            peer.say(result([peer.sent("user")[0]["uuid"]], "done"))


def request(request_id: str, **fields: Any) -> Frame:
    return {"type": "control_request", "request_id": request_id, "request": fields}


@pytest.mark.parametrize("reply", [deny("no"), let_run()])
def test_an_approver_never_overrides_a_hook_that_has_decided(
    reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def approve(name: str, *_: Any) -> Allow:
        asked.append(name)
        return Allow()

    async def play() -> dict[str, str]:
        peer = FramePeer(KeepsAsking())
        hooks = on(PermissionRequest, lambda _: reply)
        async with opened(peer.transport, limit=NEVER, hooks=hooks, can_use_tool=approve) as open_:
            await (await open_.send("go"))
        answers = [each["response"] for each in peer.sent("control_response")]
        return {each["request_id"]: each["subtype"] for each in answers}

    caplog.set_level(logging.CRITICAL)
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        answered = runner.run(play())

    assert answered == {"h": "success", "q": "error"}
    assert asked == []


async def test_the_reason_of_the_last_hook_that_ended_a_turn_is_its_own_and_replays() -> None:
    replies = [
        Reply(continue_=False, stop_reason="enough of s3cret-token"),
        {"continue": False, "stopReason": "enough"},
        Reply(continue_=False, stop_reason=""),
        {"continue_": False},
    ]
    cli = ScriptedCLI(Script(*(call("Bash", command="true") for _ in replies)))
    hooks = on(PostToolUse, lambda _: replies.pop(0))
    env = {"MY_TOKEN": "s3cret-token"}

    async with opened(cli, hooks=hooks, allowed_tools=["Bash"], env=env) as session:
        results = [await session.run("go") for _ in range(4)]
    replayed = replay(await entries_of(session)).turns

    plain = "a hook ended the turn"
    reasons = [f"{plain}: enough of [redacted]", f"{plain}: enough", plain, plain]
    assert [each.reason for each in results] == reasons
    assert [replayed[each.uuid].reason for each in results] == reasons
    assert {str(type(each.cause)) for each in replayed.values()} == {str(TurnStopped)}


async def test_a_guard_out_of_time_stops_the_tool_and_is_journalled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cli = ScriptedCLI(Script(call("Bash", command="touch x", id_="toolu_1"), say("done")))
    hooks = on(PreToolUse, hang, timeout=0.05)

    with caplog.at_level(logging.CRITICAL):
        async with opened(cli, hooks=hooks, can_use_tool=lambda *_: Allow()) as session:
            await (await session.send("go"))
    faults = [each.details for each in await entries_of(session) if each.kind is Kind.FAULT]

    assert "did not answer within 0.05 s" in cli.asked[-1].tool_results["toolu_1"]
    assert faults == [{"where": "PreToolUse hook hang", "error": "did not answer within 0.05 s"}]


async def test_hooks_may_be_given_as_a_mapping() -> None:
    cli = ScriptedCLI(Script(say("done")))
    seen: list[str] = []

    async with opened(cli, hooks={UserPromptSubmit: lambda e: seen.append(e.prompt)}) as session:
        await (await session.send("go"))

    assert seen == ["go"]


@pytest.mark.parametrize(
    ("reply", "received", "asked"),
    [
        (deny("denied by a hook"), "denied by a hook", 0),
        (let_run(), "ran", 0),
        (None, "by the approver", 1),
        ("nonsense", "Stopped: the PermissionRequest hook did not return a reply.", 0),
    ],
)
async def test_a_permission_hook_decides_before_the_approver(
    reply: Any, received: str, asked: int, caplog: pytest.LogCaptureFixture
) -> None:
    cli = ScriptedCLI(
        Script(call("Bash", command="touch x", id_="toolu_1"), say("done")),
        tools={"Bash": lambda _: "ran"},
    )
    asked_approver: list[str] = []

    def decide(name: str, *_: Any) -> Deny:
        asked_approver.append(name)
        return Deny("by the approver")

    with caplog.at_level(logging.CRITICAL):
        hooks = on(PermissionRequest, lambda _: reply)
        async with opened(cli, hooks=hooks, can_use_tool=decide) as session:
            await (await session.send("go"))

    assert cli.asked[-1].tool_results["toolu_1"] == received
    assert len(asked_approver) == asked


async def test_a_hook_object_with_a_method_called_serve_is_only_called_as_a_hook() -> None:
    served: list[object] = []

    class Watcher:
        """An object of the caller, whose other methods must not be called."""

        seen = 0

        def serve(self, *given: object) -> None:
            served.extend(given)

        def __call__(self, _event: PreToolUse) -> None:
            self.seen += 1

    watcher = Watcher()
    cli = ScriptedCLI(Script(call("Bash", command="true"), say("done")))
    async with opened(cli, hooks=on(PreToolUse, watcher), can_use_tool=lambda *_: Allow()) as open_:
        await (await open_.send("go"))

    assert watcher.seen == 1
    assert served == []
