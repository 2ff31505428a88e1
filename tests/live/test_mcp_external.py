"""Servers in other processes: passed to the stock CLI, or dialled by us and shown as our own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.permissions import ElicitationAnswer
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say, when
from steersman.tools import ToolError
from steersman.tools.mcp_remote import RemoteCall, RemoteLimits, RemoteTools
from tests.live.staging import LIMIT, MakeScripted, entries_of, environ_of, words_of
from tests.mcp_servers.running import running, stdio_config, tiny_config

pytestmark = pytest.mark.live

KINDS = ["stdio", "http", pytest.param("sse", marks=pytest.mark.soak_only)]
SECRET = "canary-5e1f-secret"
SLOW = 2 * LIMIT
"""For tests that start Python programs, which take their time on a busy machine."""


@contextmanager
def external(kind: str, log: Path) -> Iterator[dict[str, Any]]:
    """A configuration whose credential the server wants, or knows."""
    env = {"CONNECTION_LOG": str(log), "SERVER_SECRET": SECRET}
    if kind == "stdio":
        yield stdio_config(**env)
        return
    with running(kind, env={**env, "WANTED_TOKEN": SECRET}) as server:
        yield server.config(Authorization=f"Bearer {SECRET}")


def results_of(model: ScriptedModel) -> dict[str, str]:
    """What the model read of its tools."""
    return {name: text for each in model.asked for name, text in each.tool_results.items()}


@pytest.mark.parametrize("way", ["passed through", "proxied"])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_external_server_is_used(
    scripted: MakeScripted, tmp_path: Path, kind: str, way: str
) -> None:
    with external(kind, tmp_path / "log") as config:
        agent, model = scripted(
            call("mcp__far__add", a=2, b=3, id_="add"),
            call("mcp__far__fail", id_="fail"),
            call("mcp__far__ask", id_="ask"),
            call("ReadMcpResourceTool", server="far", uri="memo://today", id_="read"),
            say("seen"),
            mcp_servers={"far": config if way == "passed through" else RemoteTools(config)},
            allowed_tools=["mcp__far"],
            on_elicitation=lambda _: ElicitationAnswer("accept", {"name": "Ada"}),
            require=True,
        )

        async with asyncio.timeout(SLOW):
            result = await agent.run("go")

    read = results_of(model)
    assert result.text == "seen"
    assert json.loads(read["add"]) == {"result": 5}
    assert "Error executing tool fail" in read["fail"]
    # The CLI and newer servers agree on a protocol in which a server cannot ask by itself.
    asks = "accept: Ada" if way == "proxied" or kind == "sse" else "no back-channel"
    assert asks in read["ask"]
    assert "Feed the cat." in read["read"]


async def test_the_cli_tells_of_the_hints_of_a_tool_only_whether_it_is_read_only(
    scripted: MakeScripted,
) -> None:
    agent, _ = scripted(say("seen"), mcp_servers={"far": tiny_config()}, require=True)

    async with asyncio.timeout(SLOW), agent.session() as session:
        (far,) = (await session.mcp_status()).servers

    assert [(each.name, each.annotations) for each in far.tools] == [
        ("add", {"readOnly": True}),
        ("greet", {}),
        ("fail", {}),
        ("die", {}),
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_two_sessions_share_one_proxied_server(
    scripted: MakeScripted, tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "log"
    with external(kind, log) as config:
        agent, model = scripted(
            when("one", call("mcp__far__add", a=1, b=1, id_="one"), say("1 done")),
            when("two", call("mcp__far__add", a=2, b=2, id_="two"), say("2 done")),
            mcp_servers={"far": RemoteTools(config)},
            allowed_tools=["mcp__far"],
            require=True,
        )

        async with asyncio.timeout(SLOW), agent.session() as one, agent.session() as two:
            turns = [await one.send("one"), await two.send("two")]
            texts = [(await turn).text for turn in turns]

    assert texts == ["1 done", "2 done"]
    read = results_of(model)
    assert (json.loads(read["one"]), json.loads(read["two"])) == ({"result": 2}, {"result": 4})
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_the_credential_of_a_proxied_server_never_reaches_the_cli(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path, kind: str
) -> None:
    with external(kind, tmp_path / "log") as config:
        agent, model = scripted(
            call("mcp__far__secret", id_="secret"),
            say("seen"),
            mcp_servers={"far": RemoteTools(config)},
            allowed_tools=["mcp__far"],
            require=True,
        )

        async with asyncio.timeout(SLOW), agent.session() as session:
            await (await session.send("go"))
            seen = [*words_of(session.pid), *environ_of(session.pid).values()]
            journal = [
                each.line + repr(each.details).encode() for each in await entries_of(session)
            ]
            files = written_under(sandbox.root)
            status = await session.control("mcp_status")

    # The server had it: it says it backwards.
    assert SECRET[::-1] in results_of(model)["secret"]
    assert SECRET not in " ".join(seen) + json.dumps(status)
    assert SECRET.encode() not in b"".join(journal)
    assert files
    assert [path for path, content in files.items() if SECRET.encode() in content] == []


def written_under(root: Path) -> Mapping[str, bytes]:
    return {
        str(path): path.read_bytes()
        for folder, _, names in os.walk(root)
        for path in (Path(folder, name) for name in names)
        if path.is_file()
    }


async def test_calls_of_a_proxied_server_are_filtered_renamed_and_observed(
    scripted: MakeScripted,
) -> None:
    seen: list[RemoteCall] = []

    def look(made: RemoteCall) -> None:
        seen.append(made)
        if made.arguments.get("a") == 13:
            raise ToolError("not that number")

    agent, model = scripted(
        call("mcp__far__plus", a=2, b=3, id_="plus"),
        call("mcp__far__plus", a=13, b=3, id_="unlucky"),
        call("mcp__far__greet", id_="hidden"),
        say("seen"),
        mcp_servers={
            "far": RemoteTools(tiny_config(), tools=["add"], rename={"add": "plus"}, on_call=look)
        },
        allowed_tools=["mcp__far"],
        require=True,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    read = results_of(model)
    assert read["plus"] == "5"
    assert "not that number" in read["unlucky"]
    assert "No such tool available" in read["hidden"]
    assert [(each.tool, each.remote_tool, each.tool_use_id) for each in seen] == [
        ("plus", "add", "plus"),
        ("plus", "add", "unlucky"),
    ]


async def test_a_proxied_server_that_dies_is_back_for_the_next_call(scripted: MakeScripted) -> None:
    agent, model = scripted(
        call("mcp__far__die", id_="die"),
        call("mcp__far__add", a=2, b=3, id_="add"),
        say("seen"),
        mcp_servers={"far": RemoteTools(tiny_config(), limits=RemoteLimits(retry_pause=0))},
        allowed_tools=["mcp__far"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    read = results_of(model)
    assert "the MCP server 'far' was lost during the call" in read["die"]
    assert read["add"] == "5"
