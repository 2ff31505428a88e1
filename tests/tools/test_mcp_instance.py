"""Servers made with the `mcp` package, its newest and, by `test_mcp_majors`, its oldest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import McpNotReady, UsageError
from steersman.permissions import ElicitationAnswer
from steersman.tools import Toolbox
from steersman.tools.mcp_instance import McpInstance, as_tool_server
from tests.mcp_servers.everything import fast_server, low_level_server
from tests.mcp_servers.running import PATIENCE, Host


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_servers_of_the_package_are_recognised_and_wrapped() -> None:
    assert isinstance(as_tool_server(fast_server()), McpInstance)
    assert isinstance(as_tool_server(low_level_server()), McpInstance)


def test_other_tool_servers_are_left_alone() -> None:
    toolbox = Toolbox("box")

    assert as_tool_server(toolbox) is toolbox


def test_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match="server: got a Toolbox, allowed: a Server, FastMCP"):
        McpInstance(Toolbox("box"))


async def test_initialize_of_the_cli_is_forwarded() -> None:
    async with Host(as_tool_server(fast_server("mine"))) as host:
        hello = await host.initialize()

    assert hello["serverInfo"]["name"] == "mine"
    assert hello["protocolVersion"] == "2025-11-25"
    assert hello["capabilities"]["tools"] == {"listChanged": True}


async def test_text_structure_and_errors_of_a_fast_server_come_through() -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()

        added, failed = await host.call("add", a=2, b=3), await host.call("fail")

    assert added["result"]["structuredContent"] == {"result": 5}
    assert added["result"]["content"] == [text("5")]
    assert failed["result"]["isError"] is True


async def test_text_structure_and_errors_of_a_low_level_server_come_through() -> None:
    async with Host(as_tool_server(low_level_server())) as host:
        await host.initialize()

        said, failed = await host.call("echo", text="hi"), await host.call("fail")

    assert said["result"]["structuredContent"] == {"said": "hi"}
    assert said["result"]["content"] == [text("hi")]
    assert failed["result"]["isError"] is True
    assert failed["result"]["content"] == [text("the low pump is broken")]


@pytest.mark.parametrize("number", [0, 41, "a-7"])
async def test_ids_are_kept(number: int | str) -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()

        answer = await host.ask("ping", number=number)

    assert answer == {"jsonrpc": "2.0", "id": number, "result": {}}


async def test_resources_and_prompts_are_served() -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()

        memo = await host.ask("resources/read", uri="memo://today")
        poem = await host.ask("prompts/get", name="poem", arguments={"about": "tea"})

    assert memo["result"]["contents"][0]["text"] == "Feed the cat."
    assert poem["result"]["messages"][0]["content"] == text("Write a poem about tea.")


async def test_progress_reaches_the_cli_under_its_own_token() -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()

        await host.call("steps", meta={"progressToken": "mine"})

    assert [(each["method"], each["params"]) for each in host.notifications] == [
        ("notifications/progress", {"progressToken": "mine", "progress": 1, "total": 2}),
        ("notifications/progress", {"progressToken": "mine", "progress": 2, "total": 2}),
    ]


async def test_a_change_of_the_tools_reaches_the_cli() -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()

        await host.call("grow")

        await host.wait_for("notifications/tools/list_changed")
        assert await host.text_of("late", name="Ada") == "Hello, Ada!"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ElicitationAnswer("accept", {"name": "Ada"}), "accept: Ada"),
        (ElicitationAnswer("decline"), "decline: nobody"),
        (ElicitationAnswer("cancel"), "cancel: nobody"),
    ],
)
async def test_what_it_asks_the_person_is_answered(answer: ElicitationAnswer, said: str) -> None:
    async with Host(as_tool_server(fast_server()), "desk", answer=answer) as host:
        await host.initialize()

        assert await host.text_of("ask") == said

    (asked,) = host.asked
    assert (asked.mcp_server_name, asked.message) == ("desk", "What is your name?")
    assert (asked.mode, asked.property_order) == ("form", ["name"])


async def test_the_model_and_the_folders_are_not_lent() -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()

        refused = await host.text_of("borrow")

    assert "samples no model" in refused
    assert "shows no roots" in refused


async def test_a_call_that_is_taken_back_is_cancelled_inside_the_server(tmp_path: Path) -> None:
    note = tmp_path / "note"
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()
        call = asyncio.create_task(host.call("wait", meta={"progressToken": 1}, note=str(note)))
        await host.wait_for("notifications/progress")

        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await host.ask("ping", number=8))["result"] == {}
    assert note.read_text() == "cancelled"


async def test_a_notification_that_takes_a_call_back_lets_it_go(tmp_path: Path) -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()
        note = str(tmp_path / "note")
        call = asyncio.create_task(host.call("wait", meta={"progressToken": 1}, note=note))
        await host.wait_for("notifications/progress")

        params = {"requestId": 7, "reason": "enough"}
        method = "notifications/cancelled"
        assert await host.send({"jsonrpc": "2.0", "method": method, "params": params}) is None

        async with asyncio.timeout(PATIENCE):
            assert (await call)["error"]["message"] == "cancelled"


async def test_every_session_has_a_connection_of_its_own() -> None:
    begun: list[str] = []

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[dict[str, Any]]:
        begun.append("begun")
        yield {}
        begun.append("ended")

    server = as_tool_server(fast_server(lifespan=lifespan))
    async with Host(server, "one") as one, Host(server, "two") as two:
        await one.initialize()
        await two.initialize()
        await one.call("steps", meta={"progressToken": 1})

    assert (len(one.notifications), len(two.notifications)) == (2, 0)
    assert sorted(begun) == ["begun", "begun", "ended", "ended"]


async def test_a_second_initialize_gets_a_new_connection() -> None:
    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()
        await host.initialize()

        assert await host.text_of("add", a=1, b=1) == "2"


async def test_a_server_that_cannot_begin_says_why() -> None:
    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[dict[str, Any]]:
        raise RuntimeError("the database is down")
        yield {}

    with pytest.raises(McpNotReady) as caught:
        async with Host(as_tool_server(fast_server(lifespan=lifespan)), "pump"):
            pass

    assert (caught.value.name, caught.value.status) == ("pump", "failed")
    assert caught.value.error == "RuntimeError: the database is down"


async def test_a_server_that_cannot_begin_again_says_why() -> None:
    begun: list[None] = []

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[dict[str, Any]]:
        if begun:
            raise RuntimeError("only once")
        begun.append(None)
        yield {}

    async with Host(as_tool_server(fast_server(lifespan=lifespan))) as host:
        await host.initialize()
        answer = await host.ask("initialize", protocolVersion="2025-11-25", capabilities={})

    assert (answer["id"], answer["error"]["message"]) == (7, "RuntimeError: only once")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}, -32602),
        ({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": 5}, -32600),
    ],
)
async def test_a_strange_message_gets_an_error_with_its_id(message: Any, code: int) -> None:
    async with Host(as_tool_server(fast_server())) as host:
        answer = await host.send(message)

    assert (answer["id"], answer["error"]["code"]) == (7, code)


async def test_a_session_that_ends_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()

    async with Host(as_tool_server(fast_server())) as host:
        await host.initialize()
        assert len(asyncio.all_tasks()) > len(before)

    assert asyncio.all_tasks() == before
