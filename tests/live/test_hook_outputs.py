"""What a reply says about its own event is heeded by the stock CLI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from steersman.errors import RequestRefused, TurnStopped
from steersman.hooks import (
    HookEvent,
    Hooks,
    MessageDisplay,
    MessageDisplayOutput,
    ModelSwitchVerdict,
    Output,
    PermissionRequest,
    PermissionRequestOutput,
    PermissionVerdict,
    PostModelSwitch,
    PostModelSwitchOutput,
    PostToolBatch,
    PostToolBatchOutput,
    PostToolUse,
    PostToolUseFailure,
    PostToolUseFailureOutput,
    PostToolUseOutput,
    PreModelSwitch,
    PreToolUse,
    Reply,
    SessionStart,
    SessionStartOutput,
    Stop,
    StopOutput,
    SubagentStart,
    SubagentStartOutput,
    SubagentStop,
    SubagentStopOutput,
    ToolVerdict,
    UserPromptExpansion,
    UserPromptExpansionOutput,
    UserPromptSubmit,
    UserPromptSubmitOutput,
)
from steersman.journal import TurnResult
from steersman.journal.replaying import replay
from steersman.options import AgentDefinition
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say, when
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live

TELLING: Mapping[type[HookEvent], Callable[..., Output]] = {
    SessionStart: SessionStartOutput,
    UserPromptSubmit: UserPromptSubmitOutput,
    UserPromptExpansion: UserPromptExpansionOutput,
    PreToolUse: ToolVerdict,
    PostToolUse: PostToolUseOutput,
    PostToolUseFailure: PostToolUseFailureOutput,
    PostToolBatch: PostToolBatchOutput,
    SubagentStart: SubagentStartOutput,
    SubagentStop: SubagentStopOutput,
    Stop: StopOutput,
    PostModelSwitch: PostModelSwitchOutput,
}
"""Events at which the model can be told more."""


def reply(output: Output) -> Reply:
    return Reply(hook_specific_output=output)


def told_by(event: type[HookEvent]) -> str:
    return f"TOLD BY {event.__name__}."


def tell_at_each() -> Hooks:
    """Hooks that tell the model at which event they stand, once for each stop."""
    hooks = Hooks()

    def tell(event: HookEvent) -> Reply | None:
        if isinstance(event, Stop | SubagentStop) and event.stop_hook_active:
            return None
        kind = type(event)
        return reply(TELLING[kind](additional_context=told_by(kind)))

    for event in TELLING:
        hooks.on(event)(tell)
    return hooks


async def test_the_model_is_told_more_at_each_event_that_has_something_to_tell(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    commands = sandbox.project / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "hail.md").write_text("HAIL $ARGUMENTS")
    task: dict[str, Any] = {
        "prompt": "look it up",
        "subagent_type": "helper",
        "run_in_background": False,
    }
    script = Script(
        when(
            "go",
            call("Bash", command="exit 3"),
            call("Bash", command="true"),
            call("Agent", description="look", **task),
            say("done"),
            say("stopped"),
        ),
        when("HAIL", say("hailed"), say("stopped")),
    ).branch("look", say("found it"), say("stopped"))
    agent, model = scripted(
        script,
        hooks=tell_at_each(),
        allowed_tools=["Bash"],
        setting_sources=["project"],
        agents={"helper": AgentDefinition(description="Looks.", prompt="You look.")},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        await session.set_model("claude-haiku-4-5")
        await (await session.command("/hail Ann"))

    said = json.dumps([request.body for request in model.asked])
    assert [each.__name__ for each in TELLING if told_by(each) not in said] == []


async def test_a_turn_that_a_hook_ends_has_the_hooks_own_reason(scripted: MakeScripted) -> None:
    hooks = Hooks()
    events: list[type[HookEvent]] = [UserPromptSubmit, PreToolUse, PostToolUse, Stop]
    chosen = ""

    def stop(event: HookEvent) -> Reply | None:
        name = type(event).__name__
        return Reply(continue_=False, stop_reason=f"not after {name}") if name == chosen else None

    for each in events:
        hooks.on(each, kind="advise")(stop)
    agent, _model = scripted(
        *(call("Bash", command="true"), call("Bash", command="true")),
        *(say("stop here"), say("on")),
        hooks=hooks,
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        results: list[TurnResult] = []
        for chosen in (*(each.__name__ for each in events), ""):  # noqa: B007 - `stop` reads it
            results.append(await session.run("go"))  # noqa: PERF401
        replayed = replay(await entries_of(session)).turns

    reasons = [
        "a hook ended the turn: not after UserPromptSubmit",
        "a hook ended the turn: not after PreToolUse",
        "a hook ended the turn: not after PostToolUse",
        "a Stop hook ended the turn: not after Stop",
        "",
    ]
    assert [each.reason for each in results] == reasons
    assert [replayed[each.uuid].reason for each in results] == reasons
    assert {type(replayed[each.uuid].cause) for each in results[:4]} == {TurnStopped}


async def test_a_hook_decides_in_the_place_of_a_person(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    hooks = Hooks()

    @hooks.on(PermissionRequest)
    def decide(event: PermissionRequest) -> Reply:
        changed = {**event.tool_input, "content": "by a hook"}
        verdict = PermissionVerdict(behavior="allow", updated_input=changed)
        return reply(PermissionRequestOutput(decision=verdict))

    file = sandbox.project / "file"
    agent, _model = scripted(
        call("Write", file_path=str(file), content="x"), say("done"), hooks=hooks
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("write")

    assert file.read_text() == "by a hook"


async def test_another_text_is_shown_than_the_model_wrote(scripted: MakeScripted) -> None:
    hooks = Hooks()

    @hooks.on(MessageDisplay)
    def show(_event: MessageDisplay) -> Reply:
        return reply(MessageDisplayOutput(display_content="shown instead"))

    agent, _model = scripted(say("what I wrote"), hooks=hooks)

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    assert result.text == "shown instead"


async def test_another_result_is_shown_than_the_tool_gave(scripted: MakeScripted) -> None:
    hooks = Hooks()

    @hooks.on(PostToolUse)
    def hide(event: PostToolUse) -> Reply:
        shown = {**event.tool_response, "stdout": "hidden"}
        return reply(PostToolUseOutput(updated_tool_output=shown))

    agent, model = scripted(
        call("Bash", command="echo seen", id_="b"),
        say("done"),
        hooks=hooks,
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert model.asked[-1].tool_results["b"] == "hidden"


async def test_a_model_switch_is_refused_with_a_reason(scripted: MakeScripted) -> None:
    hooks = Hooks()

    @hooks.on(PreModelSwitch)
    def refuse(_event: PreModelSwitch) -> Reply:
        return reply(
            ModelSwitchVerdict(permission_decision="deny", permission_decision_reason="not now")
        )

    agent, _model = scripted(hooks=hooks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        with pytest.raises(RequestRefused, match="not now"):
            await session.set_model("claude-haiku-4-5")
