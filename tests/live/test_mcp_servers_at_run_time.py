"""Tool servers that come, go and change while the stock CLI runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steersman import Session, tool
from steersman.errors import McpNotReady, RequestRefused, UsageError
from steersman.journal import Kind
from steersman.testing.model import ScriptedModel
from steersman.testing.script import call, say
from steersman.tools import Toolbox
from steersman.tools.mcp_remote import RemoteTools
from tests.live.staging import LIMIT, POLL, MakeScripted, entries_of
from tests.mcp_servers.everything import fast_server
from tests.mcp_servers.running import tiny_config

pytestmark = pytest.mark.live

NOWHERE = {"type": "http", "url": "http://127.0.0.1:9/mcp"}


@tool
def ping() -> str:
    """Answer."""
    return "pong"


@tool
def other() -> str:
    """Answer otherwise."""
    return "other pong"


def results_of(model: ScriptedModel) -> dict[str, str]:
    """What the model read of its tools."""
    return {name: text for each in model.asked for name, text in each.tool_results.items()}


async def statuses(session: Session) -> dict[str, str]:
    return {each.name: each.status for each in (await session.mcp_status()).servers}


async def settled(session: Session, wanted: dict[str, str]) -> None:
    """Return once the servers are so; the CLI connects to ours after its answer."""
    while await statuses(session) != wanted:  # noqa: ASYNC110 - the CLI tells nobody
        await asyncio.sleep(POLL)


async def test_servers_in_this_process_that_are_not_named_stay(scripted: MakeScripted) -> None:
    agent, model = scripted(
        call("mcp__box__ping", id_="box"),
        call("mcp__passed__add", a=1, b=2, id_="passed"),
        call("mcp__fast__add", a=2, b=3, id_="fast"),
        call("mcp__far__add", a=3, b=4, id_="far"),
        say("seen"),
        mcp_servers={"box": Toolbox("box", [ping])},
        allowed_tools=["mcp__box", "mcp__passed", "mcp__fast", "mcp__far"],
        require=True,
    )
    far = RemoteTools(tiny_config())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        answer = await session.mcp_set_servers(
            {"passed": tiny_config(), "fast": fast_server(), "far": far}
        )
        await settled(session, dict.fromkeys(("box", "passed", "fast", "far"), "connected"))
        assert far.is_connected
        await (await session.send("go"))

    read = results_of(model)
    assert sorted(answer.added) == ["far", "fast", "passed"]
    assert (answer.removed, answer.errors) == ([], {})
    assert (read["box"], read["passed"], read["far"]) == ("pong", "3", "7")
    assert json.loads(read["fast"]) == {"result": 5}
    assert not far.is_connected


async def test_a_server_in_this_process_is_taken_away_by_none(scripted: MakeScripted) -> None:
    agent, model = scripted(
        call("mcp__box__ping", id_="box"),
        say("seen"),
        mcp_servers={"box": Toolbox("box", [ping]), "far": RemoteTools(tiny_config())},
        allowed_tools=["mcp__box"],
        require=True,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        answer = await session.mcp_set_servers({"box": None})
        await settled(session, {"far": "connected"})
        await (await session.send("go"))

    assert answer.removed == ["box"]
    assert "No such tool available" in results_of(model)["box"]


async def test_a_server_in_this_process_is_replaced_by_another(scripted: MakeScripted) -> None:
    agent, model = scripted(
        call("mcp__box__other", id_="box"),
        say("seen"),
        mcp_servers={"box": Toolbox("box", [ping])},
        allowed_tools=["mcp__box"],
        require=True,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.mcp_set_servers({"box": Toolbox("box", [other])})
        await settled(session, {"box": "connected"})
        await (await session.send("go"))

    assert results_of(model)["box"] == "other pong"


async def test_a_broken_server_that_is_added_is_told_and_noted(scripted: MakeScripted) -> None:
    agent, _model = scripted(mcp_servers={"box": Toolbox("box", [ping])}, require=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        answer = await session.mcp_set_servers({"pump": NOWHERE})
        with pytest.raises(McpNotReady, match="'far' is not ready"):
            await session.mcp_set_servers({"far": RemoteTools(NOWHERE)})
        await settled(session, {"box": "connected", "pump": "failed"})
        noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]

    assert list(answer.errors) == ["pump"]
    assert [(each["name"], each["status"]) for each in noted] == [("pump", "failed")]


async def test_a_server_is_switched_off_and_on_and_that_is_noted(scripted: MakeScripted) -> None:
    agent, _model = scripted(mcp_servers={"far": tiny_config()}, require=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.mcp_toggle("far", enabled=False)
        off = await statuses(session)
        await session.mcp_toggle("far", enabled=True)
        await settled(session, {"far": "connected"})
        noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]

    assert off == {"far": "disabled"}
    assert (noted[0]["status"], noted[-1]["status"]) == ("disabled", "connected")


async def test_a_server_is_connected_again_or_the_failure_is_noted(scripted: MakeScripted) -> None:
    agent, _model = scripted(mcp_servers={"far": tiny_config(), "pump": NOWHERE}, require=["far"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.mcp_reconnect("far")
        with pytest.raises(RequestRefused) as refused:
            await session.mcp_reconnect("pump")
        noted = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]

    assert refused.value.operation == "mcp_reconnect"
    assert [(each["name"], each["status"]) for each in noted] == [("pump", "failed")]


@pytest.mark.parametrize("given", [None, 5, {"a b": None}, {"a": 5}, {"a": {"type": "sdk"}}])
async def test_what_cannot_be_a_server_is_refused(scripted: MakeScripted, given: Any) -> None:
    agent, _model = scripted(mcp_servers={"box": Toolbox("box", [ping])}, require=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        with pytest.raises(UsageError, match="servers"):
            await session.mcp_set_servers(given)

        assert await statuses(session) == {"box": "connected"}
