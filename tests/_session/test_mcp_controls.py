"""The MCP servers of a session on a CLI played by hand: waiting for them, and changing them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.errors import McpNotReady, RequestRefused
from steersman.journal import Kind
from steersman.options import StartupLimits
from steersman.testing.faults import VirtualClockLoop
from steersman.tools import Toolbox
from tests._session.peers import Frame, FramePeer, answer_to, entries_of, opened

OUT = {"type": "http", "url": "http://127.0.0.1:9/mcp"}


def server(name: str, status: str, error: str = "") -> Frame:
    return {"name": name, "status": status, "error": error}


class Servers:
    """Answers requests about servers: `mcp_status` with one list after the other."""

    def __init__(self, *lists: list[Frame], answers: dict[str, Any] | None = None) -> None:
        self._lists: Iterator[list[Frame]] = iter(lists)
        self._last: list[Frame] = []
        self._answers = answers or {}

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        subtype = frame.get("request", {}).get("subtype")
        if subtype == "mcp_status":
            self._last = next(self._lists, self._last)
            peer.say(answer_to(frame, {"mcpServers": self._last}))
        elif subtype in self._answers:
            answer = self._answers[subtype]
            if isinstance(answer, str):
                inside = {"subtype": "error", "request_id": frame["request_id"], "error": answer}
                peer.say({"type": "control_response", "response": inside})
            else:
                peer.say(answer_to(frame, answer))


def requests(peer: FramePeer, subtype: str) -> list[Frame]:
    sent = [frame["request"] for frame in peer.sent("control_request")]
    return [request for request in sent if request["subtype"] == subtype]


def played(coroutine: Any) -> Any:
    """Run to the end in virtual time: seconds pass at once."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(coroutine)


@pytest.mark.parametrize("require", [["box"], True])
def test_a_session_starts_when_the_required_server_is_connected(require: Any) -> None:
    peer = FramePeer(
        Servers([], [server("box", "pending")], [server("box", "connected"), server("x", "needs")])
        if require is not True
        else Servers([server("box", "pending")], [server("box", "connected")])
    )

    async def run() -> float:
        async with opened(peer.transport, mcp_servers={"box": OUT}, require=require):
            return asyncio.get_running_loop().time()

    begun = played(run())

    assert len(requests(peer, "mcp_status")) == (2 if require is True else 3)
    assert begun < 1


def test_every_server_counts_if_all_are_required() -> None:
    peer = FramePeer(Servers([server("box", "connected"), server("other", "failed", "no licence")]))

    error = played(refused(peer, require=True))

    assert (error.name, error.status) == ("other", "failed")
    assert "no licence" in str(error)


async def refused(peer: FramePeer, *, require: Any, **limits: float) -> McpNotReady:
    session = Agent(
        transport=peer.transport,
        mcp_servers={"box": OUT, "bad": OUT},
        require=require,
        startup=StartupLimits(**limits),
    ).session()
    async with asyncio.timeout(500):
        with pytest.raises(McpNotReady) as caught:
            await session.start()
    assert session.state == "failed"
    return caught.value


def test_a_failed_server_is_named_before_a_pending_one() -> None:
    peer = FramePeer(Servers([server("box", "pending"), server("bad", "failed", "broken")]))

    error = played(refused(peer, require=["box", "bad"]))

    assert (error.name, error.status) == ("bad", "failed")
    assert error.evidence.phase == "servers"
    assert peer.sent("user") == []


def test_a_server_that_stays_pending_is_waited_for_as_long_as_allowed() -> None:
    peer = FramePeer(Servers([server("box", "pending")]))

    async def run() -> tuple[McpNotReady, float]:
        error = await refused(peer, require=["box"], servers=7.0)
        return error, asyncio.get_running_loop().time()

    error, took = played(run())

    assert (error.name, error.status) == ("box", "pending")
    assert "it did not connect within 7 s" in str(error)
    assert 6 < took < 8
    # 0.02 s, doubled up to half a second.
    assert len(requests(peer, "mcp_status")) == 18


def test_a_cli_that_does_not_tell_its_servers_is_given_up() -> None:
    peer = FramePeer()

    error = played(refused(peer, require=["box"], servers=3.0))

    assert (error.name, error.status) == ("(all)", "pending")


async def test_a_session_that_requires_nothing_does_not_ask() -> None:
    peer = FramePeer(Servers())

    async with opened(peer.transport, mcp_servers={"box": OUT}):
        pass

    assert requests(peer, "mcp_status") == []


async def test_each_change_of_a_server_is_journalled_once() -> None:
    peer = FramePeer(
        Servers(
            [server("a", "pending"), server("b", "connected"), server("c", "failed", "why")],
            [server("a", "failed", "why"), server("b", "connected"), server("c", "failed", "why")],
            [server("a", "connected"), server("b", "pending")],
        )
    )

    async with opened(peer.transport) as session:
        for _ in range(3):
            await session.mcp_status()

    noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]
    assert noted == [
        {"name": "c", "status": "failed", "before": "connected", "error": "why"},
        {"name": "a", "status": "failed", "before": "connected", "error": "why"},
        {"name": "a", "status": "connected", "before": "failed", "error": ""},
        {"name": "b", "status": "pending", "before": "connected", "error": ""},
    ]


async def test_a_reconnect_that_is_refused_is_journalled_and_raised() -> None:
    peer = FramePeer(Servers([], answers={"mcp_reconnect": "no such server"}))

    async with opened(peer.transport) as session:
        with pytest.raises(RequestRefused, match="no such server"):
            await session.mcp_reconnect("box")

    assert requests(peer, "mcp_reconnect") == [{"subtype": "mcp_reconnect", "serverName": "box"}]
    assert requests(peer, "mcp_status") == []
    noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]
    assert [(each["name"], each["status"], each["error"]) for each in noted] == [
        ("box", "failed", "no such server")
    ]


async def test_after_a_reconnect_and_a_toggle_the_status_is_asked_for() -> None:
    peer = FramePeer(Servers([], answers={"mcp_reconnect": {}, "mcp_toggle": {}}))

    async with opened(peer.transport) as session:
        await session.mcp_reconnect("box")
        await session.mcp_toggle("box", enabled=False)

    assert requests(peer, "mcp_toggle") == [
        {"subtype": "mcp_toggle", "serverName": "box", "enabled": False}
    ]
    assert len(requests(peer, "mcp_status")) == 2


async def test_the_cli_gets_the_whole_list_and_what_goes_is_removed_first() -> None:
    peer = FramePeer(
        Servers(
            answers={
                "mcp_set_servers": {"added": ["out"], "removed": ["x"], "errors": {"out": "down"}}
            }
        )
    )

    async with opened(peer.transport, mcp_servers={"one": Toolbox("one")}) as session:
        added = await session.mcp_set_servers({"two": Toolbox("two"), "out": OUT})
        replaced = await session.mcp_set_servers({"one": Toolbox("one")})
        removed = await session.mcp_set_servers({"two": None})

    one, two = ({"type": "sdk", "name": name} for name in ("one", "two"))
    assert [request["servers"] for request in requests(peer, "mcp_set_servers")] == [
        {"one": one, "two": two, "out": OUT},
        {"two": two},
        {"two": two, "one": one},
        {"one": one},
    ]
    assert (added.added, added.removed, added.errors) == (["out"], ["x"], {"out": "down"})
    assert (replaced.added, replaced.removed) == (["out", "out"], ["x", "x"])
    assert removed.removed == ["x"]
    noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]
    assert [(each["name"], each["error"]) for each in noted] == [("out", "down")]


async def test_servers_that_the_cli_refuses_are_not_kept() -> None:
    peer = FramePeer(Servers(answers={"mcp_set_servers": "no"}))

    async with opened(peer.transport) as session:
        for _ in range(2):
            with pytest.raises(RequestRefused):
                await session.mcp_set_servers({"two": Toolbox("two")})

    # The second attempt removes nothing first, because the first one left nothing.
    assert [list(each["servers"]) for each in requests(peer, "mcp_set_servers")] == [["two"]] * 2


async def test_the_status_of_all_servers_is_what_the_cli_reports() -> None:
    peer = FramePeer(Servers([server("box", "connected"), server("far", "failed", "gone")]))

    async with opened(peer.transport) as session:
        found = await session.mcp_status()

    assert [(each.name, each.status, each.error) for each in found.servers] == [
        ("box", "connected", ""),
        ("far", "failed", "gone"),
    ]
