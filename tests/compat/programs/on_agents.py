"""Subagents: those of the options, in the foreground and in the background."""

from __future__ import annotations

from typing import Any

from steersman.testing.script import call, say
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage

SEND = {"description": "look", "prompt": "look around", "subagent_type": "scout"}
BRANCH = {"look around": (call("Read", file_path="a.txt"), say("found it"))}


def scout(sdk: Any, **fields: Any) -> dict[str, Any]:
    return {"scout": sdk.AgentDefinition(description="looks", prompt="You look.", **fields)}


@program(call("Agent", SEND, run_in_background=False), say("done"), branches=BRANCH)
async def agent_in_the_foreground(sdk: Any, stage: Stage) -> None:
    stage.write("a.txt", "a")
    options = stage.options(agents=scout(sdk, tools=["Read"]), allowed_tools=["Agent"])
    await stage.read(sdk.query(prompt="send the scout", options=options))


@program(
    call("Agent", SEND, run_in_background=True),
    say("sent"),
    say("it is back"),
    branches=BRANCH,
)
async def agent_in_the_background(sdk: Any, stage: Stage) -> None:
    stage.write("a.txt", "a")
    options = stage.options(agents=scout(sdk), allowed_tools=["Agent"])
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("send the scout")
        await stage.read(client.receive_response())
        await stage.read(client.receive_response())
    # The agent and the turn run beside each other.
    stage.unordered()


@program(call("Agent", SEND, run_in_background=False), say("done"), branches=BRANCH)
async def agent_whose_text_is_forwarded(sdk: Any, stage: Stage) -> None:
    stage.write("a.txt", "a")
    options = stage.options(
        agents=scout(sdk, model="haiku", maxTurns=3),
        allowed_tools=["Agent"],
        forward_subagent_text=True,
    )
    await stage.read(sdk.query(prompt="send the scout", options=options))


@program(
    call("Agent", SEND, run_in_background=False),
    say("done"),
    branches={"look around": (call("Bash", command="touch made"), say("could not"))},
)
async def agent_that_asks_for_permission(sdk: Any, stage: Stage) -> None:
    async def can_use_tool(tool: str, arguments: Any, context: Any) -> Any:
        stage.called("can_use_tool", tool, arguments, context)
        return sdk.PermissionResultDeny(message="not you")

    options = stage.options(agents=scout(sdk), can_use_tool=can_use_tool)
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("send the scout")
        await stage.read(client.receive_response())


@program(call("Agent", {**SEND, "subagent_type": "nobody"}), say("there is none"))
async def agent_that_does_not_exist(sdk: Any, stage: Stage) -> None:
    options = stage.options(agents=scout(sdk), allowed_tools=["Agent"])
    await stage.read(sdk.query(prompt="send another", options=options))
