"""Names in the options that the CLI does not have are reported, once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from steersman._session.read_back import unknown_names
from steersman.hooks import Hooks, PreToolUse, Stop
from steersman.journal import Kind
from steersman.messages.system import Init
from steersman.options import Options
from steersman.permissions.policy import Policy, allow, deny
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import entries_of, opened

INIT = Init(
    tools=["Bash", "Task", "Novel", "mcp__late__x"],
    agents=["Explore"],
    skills=["pdf"],
    mcp_servers=[{"name": "git hub", "status": "failed"}, {"name": "box", "status": "pending"}],
)


def on(matcher: str) -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse, matcher)(lambda _: None)
    hooks.on(Stop)(lambda _: None)
    return hooks


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"disallowed_tools": ["Deploy", "WebFetch"]}, ["disallowed_tools", "tool named 'Deploy'"]),
        ({"allowed_tools": ["Deploy(x)"]}, ["allowed_tools", "tool named 'Deploy'"]),
        ({"tools": ["Bash", "Deploy"]}, ["tools", "tool named 'Deploy'"]),
        ({"hooks": on("Novel|Deploy")}, ["hooks", "tool named 'Deploy'"]),
        ({"policy": Policy(deny("Deploy"))}, ["policy", "tool named 'Deploy'"]),
        ({"policy": Policy(forbid=["Deploy"])}, ["policy", "tool named 'Deploy'"]),
        (
            {"policy": Policy(allow("Bash", agents=["main", "Writer"]))},
            ["policy", "agent named 'Writer'"],
        ),
        ({"policy": Policy(deny("mcp__githb__*"))}, ["policy", "MCP server named 'githb'"]),
        ({"policy": Policy(forbid=["mcp__githb"])}, ["policy", "MCP server named 'githb'"]),
        ({"disallowed_tools": ["mcp__b_x__put"]}, ["disallowed_tools", "MCP server named 'b_x'"]),
        ({"hooks": on("mcp__bx__put")}, ["hooks", "MCP server named 'bx'"]),
        ({"agent": "nobody"}, ["agent", "agent named 'nobody'"]),
        ({"skills": ["pdf", "nope"]}, ["skills", "skill named 'nope'"]),
    ],
)
def test_a_name_that_the_cli_does_not_have_is_found(
    options: dict[str, Any], named: list[str]
) -> None:
    (text,) = unknown_names(INIT, Options(**options))

    option, name = named
    assert text.startswith(f"{option}: ")
    assert name in text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"disallowed_tools": ["WebFetch", "Agent", "mcp__box__ping", "Novel"]},
        {"disallowed_tools": ["mcp__git_hub", "mcp__late__y", "mcp__*__put", "mcp__bo*"]},
        {"allowed_tools": ["mcp__own__x"], "mcp_servers": {"own": {"command": "x"}}},
        {"allowed_tools": ["mcp__functions__x"], "functions": (len,)},
        {"hooks": on("^Deploy$"), "agent": "Explore", "skills": "all"},
        {"agents": {"rev": {"description": "d", "prompt": "p"}}, "agent": "rev"},
        {"policy": Policy(deny("Bash(rm *)", agents=["Explore", "main"]), available=["Bash"])},
    ],
)
def test_known_names_are_not_reported(options: dict[str, Any]) -> None:
    assert unknown_names(INIT, Options(**options)) == []


async def test_an_unknown_name_is_logged_and_journalled_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cli = ScriptedCLI(Script(say("one"), say("two")))

    with caplog.at_level(logging.WARNING):
        async with opened(cli, disallowed_tools=["Deploy"]) as session:
            await (await session.send("a"))
            await (await session.send("b"))

    text = "disallowed_tools: the CLI has no tool named 'Deploy'"
    faults = [each.details for each in await entries_of(session) if each.kind is Kind.FAULT]
    assert faults == [{"where": "options", "error": text}]
    assert [record.message for record in caplog.records].count(text) == 1
