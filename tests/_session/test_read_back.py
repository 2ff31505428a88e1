"""What the CLI lists when a turn opens is what it was given, or the session ends."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.control.mcp import McpSetServers
from steersman.errors import CliMisbehaves
from steersman.permissions.policy import Policy
from steersman.tools import Toolbox
from tests._session.peers import INIT, Frame, FramePeer, answer_to, opened, result

SERVER = {"type": "http", "url": "http://127.0.0.1:9/mcp"}


def listing(**fields: Any) -> FramePeer:
    """Return a CLI that lists these tools or servers, and ends the turn if it may live."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say({**INIT, **fields})
            if not peer.was_killed:
                peer.say(result([frame["uuid"]]))
        elif frame.get("request", {}).get("subtype") == "mcp_set_servers":
            peer.say(answer_to(frame, {"added": ["late"], "removed": [], "errors": {}}))

    return FramePeer(play)


def servers(*names: str) -> list[Frame]:
    return [{"name": name, "status": "connected"} for name in names]


@pytest.mark.parametrize(
    ("options", "listed", "expected"),
    [
        ({"tools": ["Read"]}, {"tools": ["Read", "Bash"]}, ("tools", "Read", "Bash")),
        ({"tools": []}, {"tools": ["Bash", "Write"]}, ("tools", "none", "Bash, Write")),
        (
            {"policy": Policy(available=["Read"])},
            {"tools": ["Read", "Edit"]},
            ("tools", "Read", "Edit"),
        ),
        ({}, {"mcp_servers": servers("theirs")}, ("mcp_servers", "none", "theirs")),
        (
            {"mcp_servers": {"ours": SERVER}},
            {"mcp_servers": servers("ours", "theirs", "plugin:x:y")},
            ("mcp_servers", "ours", "theirs, plugin:x:y"),
        ),
    ],
)
async def test_a_cli_that_offers_what_it_was_not_given_is_ended(
    options: dict[str, Any], listed: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    peer = listing(**listed)

    async with opened(peer.transport, **options) as session:
        await (await session.send("go"))

    error = session.cause
    assert isinstance(error, CliMisbehaves)
    assert (error.setting, error.given, error.reported) == expected
    assert peer.was_killed


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ({}, {"tools": ["Bash", "Write", "New"]}),
        ({"tools": ["default"]}, {"tools": ["Bash", "Write"]}),
        ({"tools": ["Agent", "KillShell"]}, {"tools": ["Task", "TaskStop"]}),
        ({"tools": ["Read"]}, {"tools": ["Read", "StructuredOutput", "mcp__ours__add"]}),
        ({"tools": ["Read", "Write"]}, {"tools": ["Read"]}),
        ({"strict_mcp_config": False}, {"mcp_servers": servers("theirs")}),
        ({"mcp_servers": {"ours": SERVER}}, {"mcp_servers": servers("ours")}),
        ({"setting_sources": ["user"]}, {"mcp_servers": servers("plugin:x:y")}),
        (
            {"agents": {"a": {"description": "d", "prompt": "p", "mcpServers": [{"in": SERVER}]}}},
            {"mcp_servers": servers("in")},
        ),
    ],
)
async def test_a_cli_that_offers_no_more_than_it_was_given_runs(
    options: dict[str, Any], listed: dict[str, Any]
) -> None:
    async with opened(listing(**listed).transport, **options) as session:
        settled = await (await session.send("go"))
        assert session.cause is None

    assert settled.outcome == "completed"


async def test_servers_in_this_process_are_expected() -> None:
    peer = listing(mcp_servers=servers("ours"))

    async with opened(peer.transport, mcp_servers={"ours": Toolbox("ours", [])}) as session:
        await (await session.send("go"))
        assert session.cause is None


@pytest.mark.parametrize("how", ["verb", "control"])
async def test_servers_that_were_set_later_are_expected(how: str) -> None:
    async with opened(listing(mcp_servers=servers("late")).transport) as session:
        if how == "verb":
            await session.call(McpSetServers(servers={"late": SERVER}))
        else:
            await session.control("mcp_set_servers", servers={"late": SERVER})
        await (await session.send("go"))
        assert session.cause is None
