"""Hooks: what each event brings, and what each answer does."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.testing.script import call, fail, say
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage

TOUCH = call("Bash", command="touch made")


def recording(stage: Stage, output: Any = None) -> Any:
    """Return a hook that records its arguments and answers with `output`."""

    async def hook(event: Any, tool_use_id: Any, context: Any) -> Any:
        known = "tool_use_id" in event
        stage.called("hook", event, (tool_use_id == event["tool_use_id"]) if known else "", context)
        return output or {}

    return hook


def decision(what: str, **more: Any) -> dict[str, Any]:
    own = {"hookEventName": "PreToolUse", "permissionDecision": what, **more}
    return {"hookSpecificOutput": own}


async def touching(sdk: Any, stage: Stage, output: Any, **options: Any) -> None:
    """Run a turn that makes a file, with a hook before it."""
    hooks = {"PreToolUse": [sdk.HookMatcher(matcher="Bash", hooks=[recording(stage, output)])]}
    await stage.read(sdk.query(prompt="make", options=stage.options(hooks=hooks, **options)))
    stage.note("files", sorted(each.name for each in stage.cwd.iterdir() if each.is_file()))


@program(TOUCH, say("done"))
async def hook_that_allows(sdk: Any, stage: Stage) -> None:
    await touching(sdk, stage, decision("allow", permissionDecisionReason="why not"))


@program(TOUCH, say("done"))
async def hook_that_denies(sdk: Any, stage: Stage) -> None:
    await touching(sdk, stage, decision("deny", permissionDecisionReason="not here"))


@program(TOUCH, say("done"))
async def hook_that_asks(sdk: Any, stage: Stage) -> None:
    await touching(sdk, stage, decision("ask"), allowed_tools=["Bash"])


@program(TOUCH, say("it cannot wait"))
async def hook_that_defers(sdk: Any, stage: Stage) -> None:
    await touching(sdk, stage, decision("defer"))


@program(TOUCH, say("done"))
async def hook_that_changes_the_input(sdk: Any, stage: Stage) -> None:
    changed = {"command": "touch other"}
    await touching(sdk, stage, decision("allow", updatedInput=changed))


@program(TOUCH, say("done"))
async def hook_in_the_old_form(sdk: Any, stage: Stage) -> None:
    await touching(sdk, stage, {"decision": "block", "reason": "old"}, allowed_tools=["Bash"])


@program(TOUCH, say("never"))
async def hook_that_stops_the_turn(sdk: Any, stage: Stage) -> None:
    output = {"continue_": False, "stopReason": "enough"}
    await touching(sdk, stage, output, allowed_tools=["Bash"])


@program(TOUCH, say("done"))
async def hook_that_answers_later(sdk: Any, stage: Stage) -> None:
    await touching(sdk, stage, {"async_": True, "asyncTimeout": 1000}, allowed_tools=["Bash"])


@program(TOUCH, say("done"))
async def hook_that_raises(sdk: Any, stage: Stage) -> None:
    async def broken(event: Any, _id: Any, _context: Any) -> Any:
        stage.called("hook", event["hook_event_name"])
        raise RuntimeError("the hook is broken")

    hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[broken])]}
    options = stage.options(hooks=hooks, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="make", options=options))
    stage.note("made", (stage.cwd / "made").exists())


@program(TOUCH, say("done"))
async def hook_that_takes_too_long(sdk: Any, stage: Stage) -> None:
    async def slow(event: Any, _id: Any, _context: Any) -> Any:
        stage.called("hook", event["hook_event_name"])
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stage.called("cancelled")
            raise

    hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[slow], timeout=0.3)]}
    options = stage.options(hooks=hooks, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="make", options=options))
    stage.note("made", (stage.cwd / "made").exists())


@program(
    call("Bash", command="echo fine"),
    call("Bash", command="ls missing"),
    say("done"),
)
async def hooks_after_tools(sdk: Any, stage: Stage) -> None:
    context = {"hookEventName": "PostToolUse", "additionalContext": "by the way"}
    hooks = {
        "PostToolUse": [sdk.HookMatcher(hooks=[recording(stage, {"hookSpecificOutput": context})])],
        "PostToolUseFailure": [sdk.HookMatcher(hooks=[recording(stage)])],
        "PostToolBatch": [sdk.HookMatcher(hooks=[recording(stage)])],
    }
    options = stage.options(hooks=hooks, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="try both", options=options))


@program(say("done"))
async def hook_that_adds_to_the_prompt(sdk: Any, stage: Stage) -> None:
    own = {"hookEventName": "UserPromptSubmit", "additionalContext": "it is raining"}
    output = {"hookSpecificOutput": own, "systemMessage": "context was added"}
    hooks = {"UserPromptSubmit": [sdk.HookMatcher(hooks=[recording(stage, output)])]}
    await stage.read(sdk.query(prompt="go out?", options=stage.options(hooks=hooks)))
    stage.note("sent", "it is raining" in str(stage.model.asked[0].body["messages"]))


@program()
async def hook_that_blocks_the_prompt(sdk: Any, stage: Stage) -> None:
    output = {"decision": "block", "reason": "not today"}
    hooks = {"UserPromptSubmit": [sdk.HookMatcher(hooks=[recording(stage, output)])]}
    await stage.read(sdk.query(prompt="go", options=stage.options(hooks=hooks)))


@program(say("finished"), say("now really"))
async def hook_that_does_not_let_it_stop(sdk: Any, stage: Stage) -> None:
    async def stop(event: Any, _id: Any, _context: Any) -> Any:
        stage.called("hook", event)
        return {} if event["stop_hook_active"] else {"decision": "block", "reason": "check again"}

    hooks = {"Stop": [sdk.HookMatcher(hooks=[stop])]}
    await stage.read(sdk.query(prompt="work", options=stage.options(hooks=hooks)))


@program(
    call(
        "Agent",
        description="look",
        prompt="look around",
        subagent_type="general-purpose",
        run_in_background=False,
    ),
    say("done"),
    branches={"look around": (call("Bash", command="echo seen"), say("found it"))},
)
async def hooks_of_subagents(sdk: Any, stage: Stage) -> None:
    events = ("SubagentStart", "SubagentStop", "PreToolUse")
    hooks = {event: [sdk.HookMatcher(hooks=[recording(stage)])] for event in events}
    options = stage.options(hooks=hooks, allowed_tools=["Bash", "Agent"])
    await stage.read(sdk.query(prompt="send an agent", options=options))


@program(say("one"), say("two"), say("three"))
async def hooks_of_compaction_and_start(sdk: Any, stage: Stage) -> None:
    events = ("PreCompact", "PostCompact", "SessionStart", "SessionEnd")
    hooks = {event: [sdk.HookMatcher(hooks=[recording(stage)])] for event in events}
    async with sdk.ClaudeSDKClient(stage.options(hooks=hooks)) as client:
        for text in ("first", "second", "/compact short", "third"):
            await client.query(text)
            await stage.read(client.receive_response())


@program(TOUCH, say("done"))
async def hook_of_a_permission_request(sdk: Any, stage: Stage) -> None:
    own = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    output = {"hookSpecificOutput": own}
    hooks = {"PermissionRequest": [sdk.HookMatcher(hooks=[recording(stage, output)])]}

    async def ask(tool: str, _input: Any, _context: Any) -> Any:
        # The CLI asks both at once; the hook wins.
        await asyncio.sleep(3600)

    options = stage.options(hooks=hooks, can_use_tool=ask)
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("make")
        await stage.read(client.receive_response())
    stage.note("made", (stage.cwd / "made").exists())


@program(
    call("Bash", command="echo 1"),
    call("Read", file_path="a.txt"),
    call("Glob", pattern="*"),
    say("done"),
)
async def hooks_with_matchers(sdk: Any, stage: Stage) -> None:
    stage.write("a.txt", "a")

    def named(name: str) -> Any:
        async def hook(event: Any, _id: Any, _context: Any) -> Any:
            stage.called(name, event["tool_name"])
            return {}

        return hook

    matchers = ("Bash", "Read|Glob", "Re.*", None, "*", "bash", "Nothing")
    hooks = {
        "PreToolUse": [sdk.HookMatcher(matcher=each, hooks=[named(str(each))]) for each in matchers]
    }
    options = stage.options(hooks=hooks, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="use three tools", options=options))
    stage.unordered()


@program(TOUCH, say("done"))
async def hooks_that_disagree(sdk: Any, stage: Stage) -> None:
    hooks = {
        "PreToolUse": [
            sdk.HookMatcher(
                hooks=[recording(stage, decision("allow")), recording(stage, decision("deny"))]
            )
        ]
    }
    await stage.read(sdk.query(prompt="make", options=stage.options(hooks=hooks)))
    stage.note("made", (stage.cwd / "made").exists())


@program(fail(400, "no"))
async def hook_of_a_failed_turn(sdk: Any, stage: Stage) -> None:
    hooks = {
        event: [sdk.HookMatcher(hooks=[recording(stage)])] for event in ("Stop", "StopFailure")
    }
    await stage.read(sdk.query(prompt="work", options=stage.options(hooks=hooks)))


@program(say("one"), say("two"))
async def hooks_of_a_changed_model(sdk: Any, stage: Stage) -> None:
    events = ("PreModelSwitch", "PostModelSwitch")
    hooks = {event: [sdk.HookMatcher(hooks=[recording(stage)])] for event in events}
    async with sdk.ClaudeSDKClient(stage.options(hooks=hooks)) as client:
        await client.query("first")
        await stage.read(client.receive_response())
        await client.set_model("claude-haiku-4-5")
        await client.query("second")
        await stage.read(client.receive_response())


@program(TOUCH, say("done"))
async def hook_events_as_messages(sdk: Any, stage: Stage) -> None:
    settings = (
        '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo seen"}]}]}}'
    )
    options = stage.options(settings=settings, include_hook_events=True, allowed_tools=["Bash"])
    await stage.read(sdk.query(prompt="make", options=options))
