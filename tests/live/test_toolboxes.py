"""Toolboxes as the stock CLI knows them: what comes and goes, resources, prompts, keys."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from steersman import Session, Toolbox, tool
from steersman.journal import Kind
from steersman.testing.script import call, calls, say, when
from steersman.tools import Prompt, Resource, resource
from tests.live.staging import LIMIT, MakeScripted, entries_of, entry_where
from tests.live.test_tools import told

pytestmark = pytest.mark.live

COMING = 60 if os.environ.get("STEERSMAN_SOAK") else 3
"""Tools that are added in the middle of a turn."""


@tool
async def early() -> str:
    """There from the start."""
    return "early"


@tool
async def late() -> str:
    """Comes later."""
    return "late"


async def asked_of(session: Session, server: str) -> list[Any]:
    """The methods that the CLI has used of one of our servers."""
    asked: list[Any] = []
    for entry in await entries_of(session):
        if entry.kind is Kind.CONTROL:
            request = json.loads(entry.line).get("request", {})
            if request.get("server_name") == server:
                asked.append(request["message"].get("method"))
    return asked


async def test_a_tool_that_comes_mid_session_is_called_in_the_next_turn(
    scripted: MakeScripted,
) -> None:
    box = Toolbox("box", [early])
    agent, model = scripted(
        when("first", call("mcp__box__early"), say("1")),
        when("second", call("mcp__box__late"), say("2")),
        mcp_servers={"box": box},
        allowed_tools=["mcp__box"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("first"))
        box.register(late)
        result = await (await session.send("second"))
        asked = await asked_of(session, "box")

    assert result.outcome == "completed"
    assert told(model) == ["early", "late"]
    assert asked.count("tools/list") == 2


@pytest.mark.soak
async def test_a_tool_that_comes_in_the_middle_of_a_turn_is_called_in_it(
    scripted: MakeScripted,
) -> None:
    box = Toolbox("box")

    @tool
    async def unlock(number: int) -> str:
        box.register(tool(lambda: f"late {number}", name=f"late_{number}"))
        return f"unlocked {number}"

    box.register(unlock)
    steps = [
        step
        for n in range(COMING)
        for step in (call("mcp__box__unlock", number=n), call(f"mcp__box__late_{n}"))
    ]
    agent, model = scripted(
        *steps, say("done"), mcp_servers={"box": box}, allowed_tools=["mcp__box"]
    )

    async with asyncio.timeout(LIMIT + COMING):
        await agent.run("go")

    expected = [f"{words} {n}" for n in range(COMING) for words in ("unlocked", "late")]
    assert told(model) == expected


async def test_a_tool_that_is_gone_cannot_be_called(scripted: MakeScripted) -> None:
    box = Toolbox("box", [early, late])
    agent, model = scripted(
        when("first", call("mcp__box__late"), say("1")),
        when("second", call("mcp__box__late"), say("2")),
        mcp_servers={"box": box},
        allowed_tools=["mcp__box"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("first"))
        box.unregister(late)
        await entry_where(
            session, lambda entry: b'"tools/list"' in entry.line, after=session.last_seq
        )
        await (await session.send("second"))

    first, second = told(model)
    assert first == "late"
    assert "No such tool available: mcp__box__late" in second


async def test_one_toolbox_serves_two_sessions_and_both_hear_of_a_new_tool(
    scripted: MakeScripted,
) -> None:
    box = Toolbox("box", [early])
    options: dict[str, Any] = {"mcp_servers": {"box": box}, "allowed_tools": ["mcp__box"]}
    script = [when("first", call("mcp__box__early"), say("1"))]
    script += [when("second", call("mcp__box__late"), say("2"))]
    one, one_model = scripted(*script, **options)
    two, two_model = scripted(*script, **options)

    async with asyncio.timeout(LIMIT), one.session() as first, two.session() as second:
        await asyncio.gather(await first.send("first"), await second.send("first"))
        box.register(late)
        await asyncio.gather(await first.send("second"), await second.send("second"))

    assert told(one_model) == told(two_model) == ["early", "late"]


async def test_two_toolboxes_may_have_one_name_and_the_same_tools_under_two_keys(
    scripted: MakeScripted,
) -> None:
    def box(words: str) -> Toolbox:
        return Toolbox("same", [tool(lambda: words, name="speak")])

    agent, model = scripted(
        calls(call("mcp__left__speak"), call("mcp__right__speak")),
        say("done"),
        mcp_servers={"left": box("from the left"), "right": box("from the right")},
        allowed_tools=["mcp__left", "mcp__right"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert told(model) == ["from the left", "from the right"]


@resource("note://{title}")
async def note(title: str) -> str:
    """A note."""
    return f"note of {title}"


async def test_the_resources_of_a_toolbox_are_read_by_the_cli(scripted: MakeScripted) -> None:
    box = Toolbox("box", resources=[Resource("app://readme", "Read me."), note])
    agent, model = scripted(
        when(
            "first",
            call("ListMcpResourcesTool"),
            call("ReadMcpResourceTool", server="box", uri="app://readme"),
            call("ReadMcpResourceTool", server="box", uri="note://today"),
            call("ReadMcpResourceTool", server="box", uri="app://nothing"),
            say("1"),
        ),
        when("second", call("ListMcpResourcesTool"), say("2")),
        mcp_servers={"box": box},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("first"))
        box.register(Resource("app://news", "Old."))
        await (await session.send("second"))

    listed, readme, of_today, nothing, again = told(model)
    assert [each["uri"] for each in json.loads(listed)] == ["app://readme"]
    assert json.loads(readme)["contents"] == [
        {"uri": "app://readme", "mimeType": "text/plain", "text": "Read me."}
    ]
    assert json.loads(of_today)["contents"][0]["text"] == "note of today"
    assert "Resource not found: app://nothing" in nothing
    assert [each["uri"] for each in json.loads(again)] == ["app://readme", "app://news"]


async def test_this_cli_asks_a_server_in_this_process_for_no_prompts_and_no_templates(
    scripted: MakeScripted,
) -> None:
    """A canary: the day it does, `docs/tools.md` has something new to say."""
    box = Toolbox("box", [early], resources=[note], prompts=[Prompt("hello", "", lambda: "hi")])
    agent, _model = scripted(
        call("mcp__box__early"),
        call("ListMcpResourcesTool"),
        say("done"),
        mcp_servers={"box": box},
        allowed_tools=["mcp__box"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        box.register(Prompt("bye", "", lambda: "bye"))
        await (await session.send("go"))
        asked = await asked_of(session, "box")
        commands = {each.name for each in session.initialized.commands}

    assert set(asked) == {
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "resources/list",
    }
    assert not [name for name in commands if "hello" in name]


async def test_the_instructions_of_a_toolbox_reach_the_model(scripted: MakeScripted) -> None:
    box = Toolbox("box", [early], instructions="Use early before anything else.")
    agent, model = scripted(
        call("mcp__box__early"), say("done"), mcp_servers={"box": box}, allowed_tools=["mcp__box"]
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert "Use early before anything else." in json.dumps(model.asked[0].body)


async def test_a_server_in_the_form_of_the_official_sdks_is_called(scripted: MakeScripted) -> None:
    agent, model = scripted(
        when("go", call("mcp__x__early"), call("mcp__y__late"), say("done")),
        when("on", call("mcp__z__late"), say("done")),
        mcp_servers={
            "x": {"type": "sdk", "name": "box", "instance": Toolbox("box", [early])},
            "y": {"type": "sdk", "name": "box", "tools": [late]},
        },
        allowed_tools=["mcp__x", "mcp__y", "mcp__z"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.run("go")
        await session.mcp_set_servers({"z": {"type": "sdk", "name": "box", "tools": [late]}})
        await session.run("on")

    assert told(model) == ["early", "late", "late"]
