"""What the simulation found, spelled out: these do not change when the generator does."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.journal import Kind
from steersman.permissions import Allow
from steersman.ports import Launch
from steersman.testing.faults import Duplicate, FaultPlan, FaultyTransport, Kill, Suspend, rounds
from steersman.testing.script import Script, call, cut, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.tools import tool
from tests._session.peers import Frame, FramePeer, entries_of, opened


async def test_a_call_that_is_taken_back_in_the_same_breath_is_refused() -> None:
    call_ = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add"}}
    taken_back = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 7},
    }

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(_to_server("call", call_), _to_server("cancel", taken_back))
        elif len(peer.sent("control_response")) == 2:
            peer.say({"type": "result", "user_message_uuids": [peer.sent("user")[0]["uuid"]]})

    peer = FramePeer(play)
    async with opened(peer.transport, functions=[add]) as session:
        await (await session.send("go"))

    answers = {each["response"]["request_id"]: each for each in peer.sent("control_response")}
    assert answers["call"]["response"]["subtype"] == "error"


def _to_server(request_id: str, message: dict[str, Any]) -> Frame:
    request = {"subtype": "mcp_message", "server_name": "functions", "message": message}
    return {"type": "control_request", "request_id": request_id, "request": request}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


async def test_what_was_streamed_before_the_cli_was_killed_is_the_text_of_the_turn() -> None:
    script = Script(say("half of it", 2) + stall(0.0) + say(" and the rest"))
    plan = FaultPlan(0, Kill(" and the rest"))

    async with opened(FaultyTransport(ScriptedCLI(script), plan), revive=False) as session:
        turn = await session.send("go")
        settled = await turn
        pieces = [piece async for piece in turn.text()]

    assert (settled.outcome, settled.text) == ("failed", "half of it")
    assert "".join(pieces) == "half of it"


async def test_a_stream_that_broke_off_before_the_session_closed_is_the_text_of_the_turn() -> None:
    cli = ScriptedCLI(Script(say("half", 2) + cut(), stall()))

    async with opened(cli) as session:
        turn = await session.send("go")
        await cli.wait_for_stall()
    settled = await turn

    assert "".join([piece async for piece in turn.text()]) == settled.text


async def test_a_tool_call_that_comes_twice_runs_once() -> None:
    ran: list[int] = []

    async def count(number: int) -> int:
        """Count."""
        ran.append(number)
        await asyncio.sleep(0)
        return number

    cli = ScriptedCLI(Script(call("mcp__functions__count", number=1), say("done")))
    doubled = FaultyTransport(cli, FaultPlan(0, Duplicate('"method":"tools/call"')))

    async with opened(doubled, functions=[count]) as session:
        settled = await (await session.send("go"))

    assert (settled.text, ran) == ("done", [1])


async def test_a_question_that_comes_twice_is_asked_once_and_leaves_nothing() -> None:
    asked, begun = list[str](), asyncio.Event()

    async def ponder(name: str, *_: object) -> Allow:
        asked.append(name)
        begun.set()
        await asyncio.Event().wait()
        return Allow()

    cli = ScriptedCLI(Script(call("Bash", command="touch x"), say("done")))
    doubled = FaultyTransport(cli, FaultPlan(0, Duplicate('"subtype":"can_use_tool"')))

    async with opened(doubled, can_use_tool=ponder) as session:
        await session.send("go")
        await begun.wait()
        await rounds(3)

    assert asked == ["Bash"]
    assert len(asyncio.all_tasks()) == 1


async def test_a_cli_that_is_gone_cannot_be_stopped() -> None:
    plan = FaultPlan(0, Suspend('"state":"idle"'))

    async with opened(FaultyTransport(ScriptedCLI(), plan), close_grace=0.05) as session:
        turn = await session.send("go")
        await turn.begun()
        session.abandon()
    entries = await entries_of(session)

    assert entries[-1].kind is Kind.PHASE
    assert turn.is_settled


class StatusReceiver:
    """A receiver that only records the exit."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.gone = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        pass

    def stderr_received(self, data: bytes) -> None:
        pass

    def exited(self, status: int) -> None:
        self.status = status
        self.gone.set()


async def test_a_cli_that_ends_while_it_is_stopped_is_told_gone_when_the_session_closes() -> None:
    peer, receiver = FramePeer(), StatusReceiver()
    channel = await peer.transport.open(Launch(("claude",)), receiver)

    channel.suspend()
    peer.wire.exit(3)
    await rounds(3)
    while_stopped = receiver.status
    channel.close(0.05)
    async with asyncio.timeout(5):
        await receiver.gone.wait()

    assert (while_stopped, receiver.status) == (None, 3)
