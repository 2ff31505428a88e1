"""The tools that the stock CLI offers the model have their classes here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from steersman.messages import tool_results_of, tool_uses_of
from steersman.messages.builtin import (
    INPUTS,
    BashInput,
    BashOutput,
    FileWriteInput,
    FileWriteOutput,
    ToolInput,
    typed_output,
)
from steersman.messages.turns import User
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say
from tests.live.staging import LIMIT, MakeScripted, collect

pytestmark = pytest.mark.live

NOT_TOOLS = {"DeferredToolPlaceholder"}
"""What the CLI puts among the tools for the API's sake."""

EVERY_TOOL: Mapping[str, str] = {
    "ENABLE_TOOL_SEARCH": "false",
    "CLAUDE_CODE_USE_POWERSHELL_TOOL": "1",
    "CLAUDE_CODE_BRIEF": "1",
}
"""Gives schemas to tools that would only be named, and some that are off by default."""


OFFERED = frozenset(
    {
        "Agent",
        "AskUserQuestion",
        "Bash",
        "CronCreate",
        "CronDelete",
        "CronList",
        "Edit",
        "EnterPlanMode",
        "EnterWorktree",
        "ExitPlanMode",
        "ExitWorktree",
        "Glob",
        "Grep",
        "ListAgents",
        "Monitor",
        "NotebookEdit",
        "Read",
        "ReportFindings",
        "ScheduleWakeup",
        "SendMessage",
        "Skill",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskStop",
        "TaskUpdate",
        "WebFetch",
        "WebSearch",
        "Workflow",
        "Write",
    }
)
"""Tools of which the stock CLI shows a schema: each is compared with its class, by name."""


async def skip_questions(*_: object) -> None:
    """Without a callback, the tool that asks the user is not offered."""


def required_of(cls: type[ToolInput]) -> set[str]:
    """What a tool must be given: the fields that are not None when they are left out."""
    made = cls()
    return {
        each.encode_name for each in structs.fields(cls) if getattr(made, each.name) is not None
    }


async def schemas(
    scripted: MakeScripted, env: Mapping[str, str], **options: Any
) -> dict[str, dict[str, Any]]:
    """The schema of each tool on the model's desk, by its name."""
    # With `SendUserMessage` on its desk the model is told once to use it.
    agent, model = scripted(say("hello"), say("hello"), env=env, **options)
    async with asyncio.timeout(LIMIT):
        await agent.run("hi")
    offered = model.asked[0].body["tools"]
    return {tool["name"]: tool["input_schema"] for tool in offered if tool["name"] not in NOT_TOOLS}


@pytest.mark.parametrize(
    ("env", "options", "expected"),
    [
        ({}, {}, {"Bash", "Edit", "Read", "ToolSearch", "Write"}),
        ({"ENABLE_TOOL_SEARCH": "false"}, {}, {"CronCreate", "ExitPlanMode", "WebFetch"}),
        (
            EVERY_TOOL,
            {"tools": sorted(INPUTS), "on_question": skip_questions},
            {*OFFERED, "PowerShell"},
        ),
        ({"CLAUDE_CODE_ENABLE_TASKS": "0"}, {"tools": ["TodoWrite"]}, {"TodoWrite"}),
    ],
    ids=["by default", "without tool search", "all that there are", "the older list"],
)
async def test_every_tool_on_offer_has_a_class_with_the_fields_of_its_schema(
    scripted: MakeScripted, env: dict[str, str], options: dict[str, Any], expected: set[str]
) -> None:
    offered = await schemas(scripted, env, **options)

    required = {name: set(schema.get("required", ())) for name, schema in offered.items()}
    unknown = {
        name: set(schema["properties"]) - set(INPUTS[name].__struct_encode_fields__)
        for name, schema in offered.items()
    }

    assert expected <= set(offered)
    assert {name: required_of(INPUTS[name]) for name in offered} == required
    assert {name: fields for name, fields in unknown.items() if fields} == {}


async def test_what_tools_are_given_and_give_back_can_be_matched(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    path = str(sandbox.project / "a.txt")
    agent, _model = scripted(
        call("Bash", command="echo hi", description="Say hi"),
        call("Write", file_path=path, content="hello"),
        say("done"),
        allowed_tools=["Bash", "Write"],
    )

    async with asyncio.timeout(LIMIT):
        messages = await collect(agent.query("go"))

    uses = [block for message in messages for block in tool_uses_of(message)]
    names = {block.id: block.name for block in uses}
    given = [block.typed() for block in uses]
    outputs = [
        typed_output(names[block.tool_use_id], message.tool_use_result)
        for message in messages
        if isinstance(message, User)
        for block in tool_results_of(message)
    ]

    assert given == [
        BashInput(command="echo hi", description="Say hi"),
        FileWriteInput(file_path=path, content="hello"),
    ]
    match outputs:
        case [BashOutput(stdout="hi"), FileWriteOutput(type="create", content="hello")]:
            pass
        case other:
            raise AssertionError(other)
