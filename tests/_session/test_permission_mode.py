"""A CLI that reports another permission mode than it was given is ended before it does anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import CliMisbehaves
from steersman.hooks import Hooks, PreToolUse
from steersman.permissions import Allow, SetMode
from tests._session.peers import (
    GREETING,
    INIT,
    Frame,
    FramePeer,
    answer_to,
    opened,
    result,
)


def status(mode: str) -> Frame:
    return {"type": "system", "subtype": "status", "status": None, "permissionMode": mode}


def starting(**fields: Any) -> FramePeer:
    """Return a CLI with these fields in its answer to initialize."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "initialize":
            peer.say(answer_to(frame, {**GREETING, **fields}))

    return FramePeer(play, greets=False)


async def refusal(peer: FramePeer, **options: Any) -> CliMisbehaves:
    async with asyncio.timeout(5):
        with pytest.raises(CliMisbehaves) as refused:
            await Agent(transport=peer.transport, **options).start("go")
    assert peer.sent("user") == []
    assert peer.was_killed
    return refused.value


@pytest.mark.parametrize("reported", ["auto", "plan", "acceptEdits"])
async def test_a_cli_that_starts_in_another_mode_gets_no_prompt(reported: str) -> None:
    error = await refusal(starting(current_permission_mode=reported))

    assert (error.setting, error.given, error.reported) == ("permission_mode", "default", reported)
    assert error.what == f"permission_mode: the CLI was given 'default' and reports '{reported}'"
    assert "steersman doctor" in error.hint


async def test_a_cli_that_reports_no_mode_although_its_release_does_gets_no_prompt() -> None:
    error = await refusal(starting(current_permission_mode=""), permission_mode="plan")

    assert (error.given, error.reported) == ("plan", "")


async def test_a_cli_that_does_not_register_the_hooks_gets_no_prompt() -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _event: None)

    error = await refusal(starting(hooks_applied=False), hooks=hooks)

    assert (error.setting, error.given, error.reported) == ("hooks", "PreToolUse", "none")


@pytest.mark.parametrize("mode", ["auto", "bypassPermissions"])
async def test_a_mode_that_is_not_available_is_replaced_by_one_that_asks(mode: str) -> None:
    peer = starting(current_permission_mode="default")

    async with opened(peer.transport, permission_mode=mode) as session:
        assert session.state == "idle"


def playing(*frames: Frame) -> FramePeer:
    """Return a CLI that sends these frames and a tool request; its answer ends the turn."""
    uuids: list[str] = []

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuids.append(frame["uuid"])
            peer.say(*frames)
            asks = {"subtype": "can_use_tool", "tool_name": "Write", "input": {}}
            peer.say({"type": "control_request", "request_id": "q1", "request": asks})
        elif frame["type"] == "control_response":
            peer.say(result(uuids))

    return FramePeer(play)


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([{**INIT, "permissionMode": "auto"}], id="init"),
        pytest.param([{"type": "system", "subtype": "init"}], id="init-without"),
        pytest.param([{**INIT, "permissionMode": 7}], id="init-malformed"),
        pytest.param([INIT, status("auto")], id="status"),
        pytest.param([INIT, status("bypassPermissions")], id="status-bypass"),
        pytest.param([INIT, status("plan"), status("acceptEdits")], id="after-plan"),
    ],
)
async def test_a_cli_that_changes_its_mode_is_killed_before_a_tool_runs(
    frames: list[Frame],
) -> None:
    allowed: list[str] = []
    peer = playing(*frames)

    def decide(tool: str, *_: object) -> Allow:
        allowed.append(tool)
        return Allow()

    async with opened(peer.transport, can_use_tool=decide) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, CliMisbehaves)
    assert (session.state, session.cause) == ("failed", settled.cause)
    assert peer.was_killed
    assert [each for each in peer.sent("control_response") if "allow" in str(each)] == []


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([INIT, status("plan"), status("default")], id="plan"),
        pytest.param([INIT, status("default")], id="same"),
    ],
)
async def test_a_cli_may_enter_and_leave_plan_mode(frames: list[Frame]) -> None:
    async with opened(playing(*frames).transport) as session:
        settled = await (await session.send("go"))
        assert session.cause is None
        assert session.state == "idle"

    assert settled.outcome == "completed"


async def test_a_mode_that_the_session_has_set_is_expected() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "set_permission_mode":
            peer.say(answer_to(frame, {"mode": "acceptEdits"}), status("acceptEdits"))
        elif frame["type"] == "user":
            peer.say({**INIT, "permissionMode": "acceptEdits"}, result([frame["uuid"]]))

    async with opened(FramePeer(play).transport) as session:
        await session.set_permission_mode("acceptEdits")
        settled = await (await session.send("go"))
        assert session.cause is None
        assert session.state == "idle"

    assert settled.outcome == "completed"


async def test_a_mode_that_an_approver_has_set_is_expected() -> None:
    uuids: list[str] = []

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuids.append(frame["uuid"])
            asks = {"subtype": "can_use_tool", "tool_name": "Write", "input": {}}
            peer.say(INIT, {"type": "control_request", "request_id": "q1", "request": asks})
        elif frame["type"] == "control_response":
            peer.say(status("acceptEdits"))
            peer.say(result(uuids))

    def decide(*_: object) -> Allow:
        return Allow(updated_permissions=[SetMode(mode="acceptEdits", destination="session")])

    async with opened(FramePeer(play).transport, can_use_tool=decide) as session:
        settled = await (await session.send("go"))
        assert session.cause is None
        assert session.state == "idle"

    assert settled.outcome == "completed"


async def test_a_cli_that_replaces_a_lost_one_in_another_mode_ends_the_session() -> None:
    peers: list[FramePeer] = []

    def play(peer: FramePeer, frame: Frame) -> None:
        if peer not in peers:
            peers.append(peer)
        if frame.get("request", {}).get("subtype") == "initialize":
            mode = "default" if len(peers) == 1 else "auto"
            peer.say(answer_to(frame, {**GREETING, "current_permission_mode": mode}))
        elif frame["type"] == "user":
            peer.say({**INIT, "session_id": "known"})
            peer.wire.exit(1)

    class Place:
        async def open(self, launch: Any, receiver: Any) -> Any:
            return await FramePeer(play, greets=False).transport.open(launch, receiver)

    async with opened(Place()) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "failed"
    assert settled.cause is not None
    assert isinstance(settled.cause.__cause__, CliMisbehaves)
    assert len(peers) == 2
