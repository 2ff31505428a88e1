from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.options import AgentDefinition
from steersman.options.agents import agent_of

BASE: dict[str, Any] = {"description": "d", "prompt": "p"}
EVERYTHING: dict[str, Any] = {
    "description": "d",
    "prompt": "p",
    "tools": ("Read", "Bash(git log:*)"),
    "disallowedTools": ("Write",),
    "model": "haiku",
    "skills": ("pdf",),
    "mcpServers": ("calc", {"near": {"command": "x"}}),
    "maxTurns": 3,
    "background": False,
    "effort": "low",
    "permissionMode": "plan",
    "memory": "project",
    "initialPrompt": "go",
    "autoCompactWindow": 100_000,
    "omitClaudeMd": True,
    "criticalSystemReminder_EXPERIMENTAL": "mind",
    "observer": "watcher",
    "observerMessage": "look",
}


def test_a_definition_is_written_in_the_words_of_the_cli() -> None:
    agent = agent_of("agent", EVERYTHING)

    assert agent.written() == {
        **EVERYTHING,
        **{name: list(EVERYTHING[name]) for name in ("tools", "disallowedTools", "skills")},
        "mcpServers": ["calc", {"near": {"command": "x"}}],
    }
    assert len(EVERYTHING) == len(dataclasses.fields(AgentDefinition))


def test_both_spellings_mean_the_same() -> None:
    given = agent_of("agent", EVERYTHING)
    ours = {each.name: getattr(given, each.name) for each in dataclasses.fields(given)}

    assert agent_of("agent", ours) == given == AgentDefinition(**ours)


def test_what_is_left_open_is_not_sent() -> None:
    assert AgentDefinition(**BASE).written() == BASE
    assert AgentDefinition(**BASE, tools=()).written() == {**BASE, "tools": []}


@pytest.mark.parametrize(
    ("more", "argument"),
    [
        ({"tools": "Read"}, "a.tools"),
        ({"tools": ["Read,Write"]}, "a.tools[0]"),
        ({"disallowed_tools": [5]}, "a.disallowed_tools[0]"),
        ({"model": ""}, "a.model"),
        ({"skills": ["*"]}, "a.skills[0]"),
        ({"mcp_servers": [""]}, "a.mcp_servers[0]"),
        ({"mcp_servers": [{}]}, "a.mcp_servers[0]"),
        ({"maxTurns": 0}, "a.max_turns"),
        ({"background": "yes"}, "a.background"),
        ({"effort": "huge"}, "a.effort"),
        ({"effort": 0}, "a.effort"),
        ({"permission_mode": "yolo"}, "a.permission_mode"),
        ({"memory": "all"}, "a.memory"),
        ({"description": ""}, "a.description"),
        ({"prompt": 5}, "a.prompt"),
        ({"tool": ["Read"]}, "a key"),
        ({5: "x"}, "a key"),
    ],
    ids=str,
)
def test_a_wrong_field_is_named(more: dict[Any, Any], argument: str) -> None:
    with pytest.raises(UsageError) as caught:
        agent_of("a", {**BASE, **more})

    assert caught.value.argument == argument
    assert caught.value.allowed


def test_a_mistyped_field_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean disallowed_tools"):
        agent_of("a", {**BASE, "dissallowed_tools": ["Bash"]})


@pytest.mark.parametrize("missing", ["description", "prompt"])
def test_a_definition_needs_both_a_description_and_a_prompt(missing: str) -> None:
    with pytest.raises(UsageError, match=f"a: got no {missing},"):
        agent_of("a", {name: BASE[name] for name in BASE if name != missing})


def test_prompt_and_servers_are_not_shown() -> None:
    agent = AgentDefinition(
        description="d", prompt="canary", mcp_servers=({"a": {"env": {"K": "canary"}}},)
    )

    assert "canary" not in repr(agent)
