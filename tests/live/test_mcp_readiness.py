"""A session that needs a tool server does not begin without it, whatever kind it is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from steersman.errors import McpNotReady, StartupError
from steersman.journal import Kind
from steersman.options import StartupLimits
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say
from steersman.tools import Toolbox
from steersman.tools.mcp_remote import RemoteTools
from tests.live.staging import LIMIT, MakeScripted, entries_of, inhabitants
from tests.mcp_servers.everything import fast_server
from tests.mcp_servers.running import tiny_config

pytestmark = pytest.mark.live

DIES = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]}
NOWHERE_HTTP = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
NOWHERE_SSE = {"type": "sse", "url": "http://127.0.0.1:9/sse"}


@asynccontextmanager
async def broken_lifespan(_server: Any) -> AsyncIterator[dict[str, Any]]:
    raise RuntimeError("the database is down")
    yield {}


BROKEN: Mapping[str, Any] = {
    "no such program": lambda: {"command": "/nowhere/server"},
    "program that ends": lambda: DIES,
    "http": lambda: NOWHERE_HTTP,
    "sse": lambda: NOWHERE_SSE,
    "instance": lambda: fast_server(lifespan=broken_lifespan),
    "proxied program": lambda: RemoteTools(DIES),
    "proxied http": lambda: RemoteTools(NOWHERE_HTTP),
    "proxied sse": lambda: RemoteTools(NOWHERE_SSE),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_server_is_named_and_the_cli_is_gone(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str
) -> None:
    agent, _model = scripted(
        mcp_servers={"good": Toolbox("good"), "pump": BROKEN[kind]()}, require=True
    )

    async with asyncio.timeout(LIMIT):
        with pytest.raises(McpNotReady) as caught:
            await agent.start()

    assert (caught.value.name, caught.value.status) == ("pump", "failed")
    assert caught.value.error
    assert isinstance(caught.value, StartupError)
    assert inhabitants(sandbox.root) == {}


async def test_servers_of_every_kind_are_waited_for(scripted: MakeScripted) -> None:
    servers = {
        "box": Toolbox("box"),
        "instance": fast_server(),
        "proxied": RemoteTools(tiny_config()),
        "passed": tiny_config(),
    }
    agent, _model = scripted(mcp_servers=servers, require=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        status = await session.mcp_status()

    assert {each.name: each.status for each in status.servers} == dict.fromkeys(
        servers, "connected"
    )


async def test_a_broken_server_that_is_not_required_is_only_noted(scripted: MakeScripted) -> None:
    agent, _model = scripted(
        say("without it"),
        mcp_servers={"good": Toolbox("good"), "pump": NOWHERE_HTTP},
        require=["good"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))
        entries = await entries_of(session)

    assert result.text == "without it"
    noted = [each.details for each in entries if each.kind is Kind.SERVER]
    assert [(each["name"], each["status"]) for each in noted] == [("pump", "failed")]


async def test_a_mute_server_is_given_up_after_the_limit(scripted: MakeScripted) -> None:
    mute = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    agent, _model = scripted(
        mcp_servers={"mute": mute}, require=["mute"], startup=StartupLimits(servers=0.5)
    )

    async with asyncio.timeout(LIMIT):
        with pytest.raises(McpNotReady, match=r"it did not connect within 0\.5 s") as caught:
            await agent.start()

    assert (caught.value.name, caught.value.status) == ("mute", "pending")


async def test_a_start_that_is_cancelled_while_it_waits_leaves_no_cli(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    mute = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    agent, _model = scripted(mcp_servers={"mute": mute}, require=True)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await agent.start()

    assert inhabitants(sandbox.root) == {}
