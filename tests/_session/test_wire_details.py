"""Details between a session and a CLI played by hand: contexts, usage reports, init, keys."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman._uuids import uuid_of
from steersman.control import EndSession
from steersman.errors import ChannelClosed, LimitReached, UsageError
from steersman.journal import Kind
from steersman.options import Caps, Limits
from steersman.permissions import Allow, PermissionContext
from tests._session.peers import (
    INIT,
    Frame,
    FramePeer,
    answer_to,
    entries_of,
    lifecycle,
    opened,
    result,
    text,
)

SESSION = "11111111-1111-4111-8111-111111111111"


def subtype(frame: Frame) -> str:
    return str(frame.get("request", {}).get("subtype", ""))


async def test_an_approver_gets_the_ids_of_the_request() -> None:
    seen: list[PermissionContext] = []

    async def approve(_tool: str, _input: dict[str, Any], context: PermissionContext) -> Allow:
        seen.append(context)
        return Allow()

    request = {
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "input": {"command": "ls"},
        "tool_use_id": "t1",
        "agent_id": "a1",
    }

    def asking(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(
                {**lifecycle(frame["uuid"], "started"), "session_id": SESSION},
                {"type": "control_request", "request_id": "q1", "request": request},
            )
        elif frame["type"] == "control_response":
            peer.say(result([peer.sent("user")[0]["uuid"]], "done"))

    peer = FramePeer(asking)

    async with opened(peer.transport, can_use_tool=approve) as session:
        assert (await (await session.send("go"))).outcome == "completed"

    (context,) = seen
    assert (context.request_id, context.session_id) == ("q1", SESSION)
    assert (context.tool_use_id, context.agent_id) == ("t1", "a1")
    (answer,) = peer.sent("control_response")
    assert answer["response"] == {
        "subtype": "success",
        "request_id": "q1",
        "response": {"behavior": "allow", "updatedInput": {"command": "ls"}},
    }


def usage(usd: float, tokens: int = 0) -> Frame:
    model = {"inputTokens": tokens, "outputTokens": 1, "cacheCreationInputTokens": 2, "odd": "x"}
    return {"session": {"total_cost_usd": usd, "model_usage": {"m": model}}}


class Spending:
    """A CLI that reports these totals, one after the other, and goes on until it is stopped."""

    def __init__(self, *totals: Frame) -> None:
        self._totals = list(totals)
        self.asked = 0

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        if subtype(frame) == "get_usage":
            found = self._totals[min(self.asked, len(self._totals) - 1)]
            self.asked += 1
            peer.say(answer_to(frame, found))
        elif frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), text("a"))
        elif subtype(frame) == "interrupt":
            uuid = peer.sent("user")[-1]["uuid"]
            ended = {"subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}
            peer.say(answer_to(frame, {}), result([uuid], is_error=True, **ended))


@pytest.mark.parametrize(
    ("limits", "totals", "name"),
    [
        (Limits(turn=Caps(usd=1.0)), (usage(0.5), usage(1.5)), "usd"),
        (Limits(turn=Caps(tokens=100)), (usage(0, 10), usage(0, 110)), "tokens"),
        (Limits(session=Caps(usd=1.0)), (usage(0.0), usage(1.0)), "usd"),
    ],
)
async def test_a_turn_is_stopped_by_what_the_cli_reports_during_it(
    limits: Limits, totals: tuple[Frame, ...], name: str
) -> None:
    spending = Spending(*totals)
    peer = FramePeer(spending)

    async with opened(peer.transport, limits=limits) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, LimitReached)
    assert settled.cause.name == name
    assert spending.asked >= 2
    (first, *_rest) = [
        f["request"] for f in peer.sent("control_request") if subtype(f) != "initialize"
    ]
    assert first == {"subtype": "get_usage", "skip_behaviors": True}


async def test_the_past_of_a_resumed_conversation_does_not_count() -> None:
    def answering(peer: FramePeer, frame: Frame) -> None:
        if subtype(frame) == "get_usage":
            peer.say(answer_to(frame, usage(5.0)))
        elif frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say(lifecycle(uuid, "started"), text("a"), result([uuid], "a", total_cost_usd=5.0))

    peer = FramePeer(answering)

    async with opened(peer.transport, limits=Limits(turn=Caps(usd=1.0)), resume=SESSION) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "completed"


async def test_the_servers_of_init_are_journalled_if_they_are_not_connected() -> None:
    init = {
        **INIT,
        "mcp_servers": [
            {"name": "a", "status": "failed"},
            {"name": "b", "status": "connected"},
            {"name": "c", "status": "pending"},
        ],
    }

    def starting(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say(init, lifecycle(uuid, "started"), result([uuid], "a"))

    async with opened(FramePeer(starting).transport) as session:
        await (await session.send("go"))

    noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]
    assert [(each["name"], each["status"]) for each in noted] == [("a", "failed")]


async def test_the_uuid_of_a_keyed_prompt_comes_from_the_conversation_and_the_key() -> None:
    peer = FramePeer()

    async with opened(peer.transport, resume=SESSION) as session:
        turn = await session.send("go", key="k")

        assert turn.uuid == uuid_of(session.id or "", "k")
        assert session.id == SESSION


async def test_a_checkpoint_of_another_session_is_refused() -> None:
    def answering(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            said = {**text("a"), "uuid": "m1", "session_id": SESSION}
            peer.say(lifecycle(uuid, "started"), said, result([uuid], "a"))

    async with asyncio.timeout(5), opened(FramePeer(answering).transport) as one:
        await (await one.send("go"))
        checkpoint = one.checkpoint()
        async with opened(FramePeer().transport) as other:
            with pytest.raises(UsageError) as refused:
                await other.rewind(checkpoint)

    assert (refused.value.argument, refused.value.given) == ("checkpoint", checkpoint)
    assert (checkpoint.session_id, checkpoint.message_uuid, checkpoint.prompts) == (
        SESSION,
        "m1",
        1,
    )


async def test_a_line_above_the_buffer_of_the_options_is_dropped_and_noted() -> None:
    def talking(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say({"type": "new", "long": "x" * 3000})
            peer.say(lifecycle(uuid, "started"), result([uuid], "a"))

    async with opened(FramePeer(talking).transport, max_buffer_size=2000) as session:
        assert (await (await session.send("go"))).outcome == "completed"

    dropped = [each for each in await entries_of(session) if each.kind is Kind.OVERSIZE]
    assert len(dropped) == 1
    assert dropped[0].details["size"] > 3000


async def test_a_cli_that_is_told_to_end_is_not_restarted() -> None:
    def ending(peer: FramePeer, frame: Frame) -> None:
        if subtype(frame) == "end_session":
            peer.say(answer_to(frame, {}))

    peer = FramePeer(ending)

    async with opened(peer.transport, resume=SESSION) as session:
        await session.call(EndSession())
        with pytest.raises(ChannelClosed):
            await session.send("more")

    assert (session.state, session.restarts) == ("completed", 0)
    assert peer.sent("user") == []


async def test_a_text_that_an_old_cli_would_run_as_a_command_is_refused() -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        with pytest.raises(UsageError) as refused:
            await session.send("/clear")

    assert (refused.value.argument, refused.value.given) == ("prompt", "/clear")
    assert refused.value.allowed == "a text this old CLI does not run: no `/`"
    assert refused.value.hint == "if it is meant as a command, use session.command()"
    assert peer.sent("user") == []
