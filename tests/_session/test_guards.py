"""Guards fail closed; a request that cannot be answered is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from steersman.hooks import Hooks, PostToolUse, PreToolUse, Stop, UserPromptSubmit
from steersman.hooks import allow as let_run
from steersman.hooks import deny as stop_tool
from steersman.journal import Kind
from steersman.permissions import Allow, Deny, PermissionContext
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import Frame, FramePeer, entries_of, opened


def bash() -> Script:
    return Script(call("Bash", command="touch x", id_="toolu_1"), say("done"))


class Ran:
    """A built-in tool that records its inputs."""

    def __init__(self) -> None:
        self.inputs: list[dict[str, Any]] = []

    def __call__(self, given: dict[str, Any]) -> str:
        self.inputs.append(given)
        return "ran"


def raising(*_given: Any) -> Any:
    raise RuntimeError("secret detail")


def invalid(*_given: Any) -> Any:
    return "yes"


async def use_bash(**options: Any) -> tuple[Ran, str, list[Any]]:
    """Let the model use Bash; return what ran, the tool result and the journal."""
    ran, cli = Ran(), None
    cli = ScriptedCLI(bash(), tools={"Bash": ran})
    async with opened(cli, **options) as session:
        await (await session.send("go"))
    received = cli.asked[-1].tool_results.get("toolu_1", "")
    return ran, received, await entries_of(session)


async def test_without_an_approver_a_permission_is_denied_and_the_text_names_the_option() -> None:
    ran, received, _ = await use_bash()

    assert ran.inputs == []
    assert "can_use_tool=" in received


async def test_an_approver_that_allows_lets_it_run_perhaps_with_other_input() -> None:
    ran, received, _ = await use_bash(can_use_tool=lambda *_: Allow({"command": "true"}))

    assert ran.inputs == [{"command": "true"}]
    assert received == "ran"


async def test_the_model_gets_the_reason_of_a_denial() -> None:
    ran, received, _ = await use_bash(can_use_tool=lambda *_: Deny("not on my machine"))

    assert (ran.inputs, received) == ([], "not on my machine")


@pytest.mark.parametrize(
    ("approver", "reason"), [(raising, "raised RuntimeError"), (invalid, "did not return")]
)
async def test_an_approver_that_fails_denies(
    approver: Callable[..., Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        ran, received, journal = await use_bash(can_use_tool=approver)

    assert ran.inputs == []
    assert reason in received
    assert "secret detail" not in received
    assert [entry.details["where"] for entry in journal if entry.kind is Kind.FAULT] == [
        "can_use_tool"
    ]


async def test_a_denial_may_end_the_turn() -> None:
    cli = ScriptedCLI(bash())

    async with opened(cli, can_use_tool=lambda *_: Deny("stop", interrupt=True)) as session:
        settled = await (await session.send("go"))

    assert (settled.outcome, settled.terminal_reason) == ("interrupted", "aborted_tools")
    assert len(cli.asked) == 1


async def test_an_approver_gets_the_ids_of_the_call_and_the_session() -> None:
    seen: list[tuple[str, dict[str, Any], PermissionContext]] = []

    def approve(name: str, given: dict[str, Any], context: PermissionContext) -> Allow:
        seen.append((name, given, context))
        return Allow()

    async with opened(ScriptedCLI(bash()), can_use_tool=approve) as session:
        await (await session.send("go"))

    ((name, given, context),) = seen
    assert (name, given) == ("Bash", {"command": "touch x"})
    assert (context.tool_use_id, context.session_id) == ("toolu_1", session.id)
    assert context.agent_id is None


def hooked(event: Any, callback: Callable[..., Any], matcher: str | None = None) -> Hooks:
    hooks = Hooks()
    hooks.on(event, matcher)(callback)
    return hooks


async def test_a_hook_that_denies_stops_the_tool_before_the_approver_is_called() -> None:
    asked: list[str] = []
    hooks = hooked(PreToolUse, lambda _: stop_tool("house rule"))

    def approve(name: str, *_: Any) -> Allow:
        asked.append(name)
        return Allow()

    ran, received, _ = await use_bash(hooks=hooks, can_use_tool=approve)

    assert (ran.inputs, asked) == ([], [])
    assert "house rule" in received


async def test_a_hook_that_allows_lets_it_run_without_asking() -> None:
    hooks = hooked(PreToolUse, lambda _: let_run(updated_input={"command": "true"}))

    ran, _, _ = await use_bash(hooks=hooks)

    assert ran.inputs == [{"command": "true"}]


@pytest.mark.parametrize(
    ("callback", "reason"), [(raising, "raised RuntimeError"), (invalid, "did not return")]
)
async def test_a_hook_before_a_tool_that_fails_stops_the_tool(
    callback: Callable[..., Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        ran, received, journal = await use_bash(
            hooks=hooked(PreToolUse, callback), can_use_tool=lambda *_: Allow()
        )

    assert ran.inputs == []
    assert reason in received
    assert [entry.details["where"] for entry in journal if entry.kind is Kind.FAULT] == [
        f"PreToolUse hook {callback.__name__}"
    ]


@pytest.mark.parametrize("callback", [raising, invalid])
async def test_a_hook_on_a_prompt_that_fails_keeps_it_from_the_model(
    callback: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    cli = ScriptedCLI()

    with caplog.at_level(logging.CRITICAL):
        async with opened(cli, hooks=hooked(UserPromptSubmit, callback)) as session:
            settled = await (await session.send("my prompt"))

    assert cli.asked == []
    assert settled.text == ""
    assert "Stopped: the UserPromptSubmit hook" in settled.answer


@pytest.mark.parametrize("event", [PostToolUse, Stop])
@pytest.mark.parametrize("callback", [raising, invalid])
async def test_an_observer_that_fails_does_not_affect_the_run(
    event: Any, callback: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        ran, received, _ = await use_bash(
            hooks=hooked(event, callback), can_use_tool=lambda *_: Allow()
        )

    assert len(ran.inputs) == 1
    assert received == "ran"


async def test_a_hook_is_called_only_for_the_tools_that_it_names() -> None:
    seen: list[str] = []
    hooks = hooked(PreToolUse, lambda event: seen.append(event.tool_name), "Write|Edit")
    hooks.on(PreToolUse, "B.*")(lambda event: seen.append(f"pattern {event.tool_name}"))

    await use_bash(hooks=hooks)

    assert seen == ["pattern Bash"]


async def test_a_hook_may_keep_the_turn_going() -> None:
    replies: list[Any] = [{"decision": "block", "reason": "and the tests?"}, None]
    cli = ScriptedCLI(Script(say("done"), say("now they pass")))

    async with opened(cli, hooks=hooked(Stop, lambda _: replies.pop(0))) as session:
        settled = await (await session.send("go"))

    assert settled.text == "done\n\nnow they pass"
    assert cli.asked[-1].latest == "Stop hook feedback:\nand the tests?"


@pytest.mark.parametrize(
    "request_",
    [
        {"subtype": "request_user_dialog", "dialog": "?"},
        {"subtype": "can_use_tool", "tool_name": 5},
        {"subtype": "hook_callback", "callback_id": "hook_77", "input": {}},
        {"subtype": "hook_callback", "input": {}},
        {"no": "subtype"},
        "not even an object",
    ],
)
async def test_a_request_that_cannot_be_answered_is_refused_and_not_ignored(request_: Any) -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            asked = {"type": "control_request", "request_id": "strange-1", "request": request_}
            peer.say(asked)
        elif frame["type"] == "control_response":
            peer.say({"type": "result", "user_message_uuids": [peer.sent("user")[0]["uuid"]]})

    peer = FramePeer(play)
    async with opened(peer.transport) as session:
        await (await session.send("go"))

    (answer,) = peer.sent("control_response")
    assert answer["response"]["subtype"] == "error"
    assert answer["response"]["request_id"] == "strange-1"
    assert answer["response"]["error"]


async def test_a_call_to_an_unknown_server_gets_an_error_with_its_own_id() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}}
        if frame["type"] == "user":
            request = {"subtype": "mcp_message", "server_name": "gone", "message": message}
            peer.say({"type": "control_request", "request_id": "m-1", "request": request})
        elif frame["type"] == "control_response":
            peer.say({"type": "result", "user_message_uuids": [peer.sent("user")[0]["uuid"]]})

    peer = FramePeer(play)
    async with opened(peer.transport) as session:
        await (await session.send("go"))

    (answer,) = peer.sent("control_response")
    response = answer["response"]["response"]["mcp_response"]
    assert (response["id"], "gone" in response["error"]["message"]) == (7, True)
