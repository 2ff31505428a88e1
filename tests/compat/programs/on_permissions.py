"""`can_use_tool`: what it is asked, and what each answer does."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from steersman.testing.script import call, calls, say
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage

TOUCH = call("Bash", command="touch made")


async def asking(sdk: Any, stage: Stage, answer: Any, *texts: str, **options: Any) -> None:
    """Run turns in a client whose permission callback records what it is asked."""

    async def can_use_tool(tool: str, arguments: Any, context: Any) -> Any:
        stage.called("can_use_tool", tool, arguments, context)
        return answer(sdk) if callable(answer) else answer

    async with sdk.ClaudeSDKClient(stage.options(can_use_tool=can_use_tool, **options)) as client:
        for text in texts or ("make",):
            await client.query(text)
            await stage.read(client.receive_response())
    stage.note("files", sorted(each.name for each in stage.cwd.iterdir() if each.is_file()))


@program(TOUCH, say("done"))
async def permission_given(sdk: Any, stage: Stage) -> None:
    await asking(sdk, stage, sdk.PermissionResultAllow())


@program(TOUCH, say("not done"))
async def permission_denied(sdk: Any, stage: Stage) -> None:
    await asking(sdk, stage, sdk.PermissionResultDeny(message="not here"))


@program(TOUCH, say("not done"))
async def permission_denied_without_a_message(sdk: Any, stage: Stage) -> None:
    await asking(sdk, stage, sdk.PermissionResultDeny())


@program(TOUCH, say("after"))
async def permission_denied_with_an_interrupt(sdk: Any, stage: Stage) -> None:
    deny = sdk.PermissionResultDeny(message="stop", interrupt=True)
    await asking(sdk, stage, deny, "make", "and now?")


@program(TOUCH, say("done"))
async def permission_with_another_input(sdk: Any, stage: Stage) -> None:
    await asking(sdk, stage, sdk.PermissionResultAllow(updated_input={"command": "touch other"}))


@program(
    call("Write", file_path="a.txt", content="a"),
    say("one"),
    call("Write", file_path="b.txt", content="b"),
    say("two"),
)
async def permission_with_a_new_mode(sdk: Any, stage: Stage) -> None:
    def allow(sdk: Any) -> Any:
        update = sdk.PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return sdk.PermissionResultAllow(updated_permissions=[update])

    await asking(sdk, stage, allow, "write a", "write b")


@program(TOUCH, say("one"), call("Bash", command="touch again"), say("two"))
async def permission_with_a_new_rule(sdk: Any, stage: Stage) -> None:
    types = import_module(f"{sdk.__name__}.types")
    rule = types.PermissionRuleValue(tool_name="Bash", rule_content="touch:*")
    update = sdk.PermissionUpdate(
        type="addRules", rules=[rule], behavior="allow", destination="session"
    )
    allow = sdk.PermissionResultAllow(updated_permissions=[update])
    await asking(sdk, stage, allow, "make", "make again")


@program(TOUCH, say("not done"))
async def permission_callback_that_raises(sdk: Any, stage: Stage) -> None:
    def broken(_sdk: Any) -> Any:
        raise RuntimeError("the callback is broken")

    await asking(sdk, stage, broken)


@program(TOUCH, say("not done"))
async def permission_callback_with_a_wrong_answer(sdk: Any, stage: Stage) -> None:
    await asking(sdk, stage, {"behavior": "allow"})


@program(
    call(
        "AskUserQuestion",
        {
            "questions": [
                {
                    "question": "Which colour?",
                    "header": "Colour",
                    "multiSelect": False,
                    "options": [
                        {"label": "red", "description": "warm"},
                        {"label": "blue", "description": "cold"},
                    ],
                }
            ]
        },
    ),
    say("blue it is"),
)
async def permission_as_an_answer_to_the_model(sdk: Any, stage: Stage) -> None:
    async def can_use_tool(tool: str, arguments: Any, context: Any) -> Any:
        stage.called("can_use_tool", tool, arguments, context)
        answers = {each["question"]: each["options"][1]["label"] for each in arguments["questions"]}
        return sdk.PermissionResultAllow(updated_input={**arguments, "answers": answers})

    async with sdk.ClaudeSDKClient(stage.options(can_use_tool=can_use_tool)) as client:
        await client.query("ask me")
        await stage.read(client.receive_response())


@program(TOUCH, say("after"))
async def permission_interrupted_while_it_is_open(sdk: Any, stage: Stage) -> None:
    is_open = asyncio.Event()

    async def can_use_tool(tool: str, _arguments: Any, _context: Any) -> Any:
        stage.called("can_use_tool", tool)
        is_open.set()
        await asyncio.sleep(3600)

    async with sdk.ClaudeSDKClient(stage.options(can_use_tool=can_use_tool)) as client:
        await client.query("make")
        reading = asyncio.ensure_future(stage.read(client.receive_response()))
        await is_open.wait()
        await client.interrupt()
        await reading
        await client.query("and now?")
        await stage.read(client.receive_response())


@program(
    calls(
        call("Read", file_path="/etc/hostname", id_="toolu_first"),
        call("Read", file_path="/etc/hosts", id_="toolu_second"),
    ),
    say("read"),
)
async def permissions_of_two_tools_at_once(sdk: Any, stage: Stage) -> None:
    asked: set[str] = set()
    both, first = asyncio.Event(), asyncio.Event()

    async def can_use_tool(_tool: str, arguments: Any, _context: Any) -> Any:
        path = str(arguments["file_path"])
        asked.add(path)
        if len(asked) == 2:
            both.set()
        await (both if path.endswith("hosts") else first).wait()
        return sdk.PermissionResultDeny(message=f"no {path}")

    async with sdk.ClaudeSDKClient(stage.options(can_use_tool=can_use_tool)) as client:
        await client.query("read both")
        stream = client.receive_response()
        await stage.read_until(stream, lambda each: isinstance(each, sdk.UserMessage))
        first.set()
        await stage.read(stream)
    stage.note("asked", sorted(asked))


@program(say("nothing was asked"))
async def permission_callback_with_a_plain_prompt(sdk: Any, stage: Stage) -> None:
    async def can_use_tool(_tool: str, _arguments: Any, _context: Any) -> Any:
        return sdk.PermissionResultAllow()

    options = stage.options(can_use_tool=can_use_tool)
    await stage.trying("query", stage.read(sdk.query(prompt="make", options=options)))
    named = stage.options(can_use_tool=can_use_tool, permission_prompt_tool_name="mcp__a__b")
    await stage.trying("connect", sdk.ClaudeSDKClient(named).connect())


@program(call("Write", file_path="plan.txt", content="x"), say("only planned"))
async def permission_mode_plan(sdk: Any, stage: Stage) -> None:
    options = stage.options(permission_mode="plan")
    await stage.read(sdk.query(prompt="write", options=options))
    stage.note("written", (stage.cwd / "plan.txt").exists())


@program(TOUCH, say("done"))
async def permission_mode_bypass(sdk: Any, stage: Stage) -> None:
    options = stage.options(permission_mode="bypassPermissions", env={"IS_SANDBOX": "1"})
    await stage.read(sdk.query(prompt="make", options=options))
    stage.note("made", (stage.cwd / "made").exists())


@program(TOUCH, say("not done"))
async def permission_mode_dont_ask(sdk: Any, stage: Stage) -> None:
    await asking(sdk, stage, sdk.PermissionResultAllow(), permission_mode="dontAsk")
