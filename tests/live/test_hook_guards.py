"""Guards against files that must not come to be, on the stock CLI."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman import Hooks, Session
from steersman.errors import RequestRefused
from steersman.hooks import (
    HookEvent,
    HookMatcher,
    PermissionRequest,
    PostToolUse,
    PreModelSwitch,
    PreToolUse,
    Stop,
    TaskCreated,
    UserPromptExpansion,
    UserPromptSubmit,
    ask,
    block_paths,
    context,
    defer,
    deny,
    deny_tools,
    modify,
    only_tools,
    rate_limit,
    redact,
    validate,
)
from steersman.permissions import Allow
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live

NEVER = 3600.0

TASK: dict[str, Any] = {
    "description": "look",
    "prompt": "look around",
    "subagent_type": "helper",
    "run_in_background": False,
}


def write(box: CliSandbox, name: str, content: str = "asked for") -> Step:
    return call("Write", file_path=str(box.project / name), content=content, id_=f"toolu_{name}")


def files_in(box: CliSandbox) -> dict[str, str]:
    return {path.name: path.read_text() for path in box.project.iterdir() if path.is_file()}


def on(event: type[HookEvent], callback: Callable[..., Any], **given: Any) -> Hooks:
    hooks = Hooks()
    hooks.on(event, **given)(callback)
    return hooks


def raising(*_given: Any) -> Any:
    raise RuntimeError("s3cret")


async def slow(*_given: Any) -> None:
    await asyncio.sleep(NEVER)


async def cancelled(*_given: Any) -> None:
    raise asyncio.CancelledError


def nonsense(*_given: Any) -> Any:
    return 42


def null(*_given: Any) -> Any:
    return {"hookSpecificOutput": {"permissionDecision": "allow"}}


FAILURES = [raising, slow, cancelled, nonsense, null]


BY_NAME = {each.__name__: each for each in FAILURES}


async def failing(event: PreToolUse | UserPromptSubmit) -> Any:
    """Fail as the file or the prompt says."""
    name = event.prompt if isinstance(event, UserPromptSubmit) else event.tool_input["file_path"]
    given = BY_NAME[Path(name).name](event)
    return await given if inspect.isawaitable(given) else given


async def test_a_guard_that_fails_leaves_the_file_unwritten(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        calls(*(write(sandbox, name) for name in BY_NAME)),
        say("done"),
        hooks=on(PreToolUse, failing, timeout=0.2),
        allowed_tools=["Write"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("write"))
        faults = [each.details for each in await entries_of(session) if each.kind.value == "fault"]

    assert files_in(sandbox) == {}
    told = model.asked[-1].tool_results
    stopped = {name for name in BY_NAME if "Stopped: the PreToolUse hook" in told[f"toolu_{name}"]}
    assert stopped == set(BY_NAME)
    assert "s3cret" not in str(told)
    assert [fault["where"] for fault in faults] == ["PreToolUse hook failing"] * len(BY_NAME)
    assert (result.outcome, result.text) == ("completed", "done")


async def test_a_guard_that_is_interrupted_leaves_the_file_unwritten(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    looked, was_cancelled = asyncio.Event(), asyncio.Event()

    async def guard(_event: PreToolUse) -> None:
        looked.set()
        try:
            await asyncio.sleep(NEVER)
        finally:
            was_cancelled.set()

    agent, _ = scripted(
        write(sandbox, "guarded"), hooks=on(PreToolUse, guard), allowed_tools=["Write"]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("write")
        await looked.wait()
        await session.interrupt()
        result = await turn
        await was_cancelled.wait()

    assert result.outcome == "interrupted"
    assert files_in(sandbox) == {}


async def test_closing_while_a_guard_looks_leaves_the_file_unwritten(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    looked = asyncio.Event()

    async def guard(_event: PreToolUse) -> None:
        looked.set()
        await asyncio.sleep(NEVER)

    agent, _ = scripted(
        write(sandbox, "guarded"), hooks=on(PreToolUse, guard), allowed_tools=["Write"]
    )

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await session.send("write")
            await looked.wait()

    assert files_in(sandbox) == {}


@pytest.mark.parametrize("fails", FAILURES)
async def test_observers_and_advisers_that_fail_change_nothing(
    scripted: MakeScripted, sandbox: CliSandbox, fails: Callable[..., Any]
) -> None:
    hooks = on(PreToolUse, fails, timeout=0.2, kind="observe")
    hooks.on(PostToolUse, timeout=0.2)(fails)
    hooks.on(UserPromptSubmit, kind="observe", timeout=0.2)(lambda _: deny("ignored"))
    hooks.on(Stop, timeout=0.2)(fails)
    agent, _ = scripted(write(sandbox, "file"), say("done"), hooks=hooks, allowed_tools=["Write"])

    async with asyncio.timeout(LIMIT):
        result = await agent.run("write")

    assert files_in(sandbox) == {"file": "asked for"}
    assert (result.outcome, result.text) == ("completed", "done")


async def test_a_prompt_that_no_guard_could_look_at_reaches_no_model(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(hooks=on(UserPromptSubmit, failing, timeout=0.2))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        results = [await (await session.send(name)) for name in BY_NAME]

    assert model.asked == []
    assert all("Stopped: the UserPromptSubmit hook" in each.answer for each in results)


@pytest.mark.parametrize("fails", [raising, slow, nonsense])
async def test_a_command_that_no_guard_could_look_at_is_not_run(
    scripted: MakeScripted, sandbox: CliSandbox, fails: Callable[..., Any]
) -> None:
    commands = sandbox.project / ".claude/commands"
    commands.mkdir(parents=True)
    (commands / "hello.md").write_text("Say hello to $ARGUMENTS.")
    agent, model = scripted(
        hooks=on(UserPromptExpansion, fails, timeout=0.2, matcher="hello"),
        setting_sources=["project"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.command("/hello world"))

    assert model.asked == []
    assert "Stopped: the UserPromptExpansion hook" in result.answer


@pytest.mark.parametrize("fails", [raising, slow, nonsense])
async def test_a_permission_that_no_guard_could_look_at_is_denied(
    scripted: MakeScripted, sandbox: CliSandbox, fails: Callable[..., Any]
) -> None:
    agent, model = scripted(
        write(sandbox, "asked"), say("done"), hooks=on(PermissionRequest, fails, timeout=0.2)
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("write")

    assert files_in(sandbox) == {}
    assert model.asked[-1].tool_results["toolu_asked"]


@pytest.mark.parametrize(
    ("reply", "files"),
    [(deny("a hook says no"), {}), (None, {"asked": "asked for"})],
)
async def test_an_approver_does_not_overtake_a_guard_on_the_same_question(
    scripted: MakeScripted, sandbox: CliSandbox, reply: Any, files: dict[str, str]
) -> None:
    sessions: list[Session] = []

    async def guard(_event: PermissionRequest) -> Any:
        # A round trip: meanwhile the CLI would have heard an approver that does not wait.
        await sessions[0].mcp_status()
        return reply

    agent, _ = scripted(
        write(sandbox, "asked"),
        say("done"),
        hooks=on(PermissionRequest, guard),
        can_use_tool=lambda *_: Allow(),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        sessions.append(session)
        await (await session.send("write"))

    assert files_in(sandbox) == files


@pytest.mark.parametrize("fails", [raising, slow, nonsense])
async def test_a_model_switch_and_a_task_can_be_guarded(
    scripted: MakeScripted, fails: Callable[..., Any]
) -> None:
    hooks = on(PreModelSwitch, fails, timeout=0.2, kind="guard")
    hooks.on(TaskCreated, timeout=0.2, kind="guard")(fails)
    agent, model = scripted(
        call("TaskCreate", subject="do it", description="all of it", id_="toolu_task"),
        say("done"),
        hooks=hooks,
        allowed_tools=["TaskCreate"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        with pytest.raises(RequestRefused, match="Stopped: the PreModelSwitch hook"):
            await session.set_model("claude-haiku-4-5")

    assert "Stopped: the TaskCreated hook" in model.asked[-1].tool_results["toolu_task"]


async def test_a_modified_input_is_what_ran_and_a_question_is_asked_about_it(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked: list[str] = []

    def change(event: PreToolUse) -> Any:
        match Path(event.tool_input["file_path"]).name:
            case "changed":
                return modify({**event.tool_input, "content": "by a hook"})
            case "asked":
                return ask("look twice")
            case _:
                return context("a hook was here")

    def approve(_name: str, given: dict[str, Any], _context: Any) -> Allow:
        asked.append(f"{Path(given['file_path']).name}: {given['content']}")
        return Allow()

    names = ("changed", "asked", "plain")
    agent, model = scripted(
        calls(*(write(sandbox, name) for name in names)),
        say("done"),
        hooks=on(PreToolUse, change),
        can_use_tool=approve,
        allowed_tools=[f"Write({sandbox.project}/asked)"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("write")

    assert files_in(sandbox) == {
        "changed": "by a hook",
        "asked": "asked for",
        "plain": "asked for",
    }
    assert asked == ["changed: by a hook", "asked: asked for", "plain: asked for"]
    assert "a hook was here" in str(model.asked[-1].body)


async def test_ready_made_guards_hold_on_the_stock_cli(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(deny_tools("WebFetch|WebSearch"))
    hooks.on(PreToolUse)(only_tools("Bash", "Write", "WebFetch"))
    hooks.on(PreToolUse)(block_paths("secrets"))
    hooks.on(PreToolUse, "Bash")(
        validate(lambda _, given: "no sudo" if "sudo" in given["command"] else None)
    )
    hooks.on(PreToolUse, "Bash")(rate_limit(2, per=3600, clock=lambda: 0.0))
    hooks.on(PostToolUse)(redact("hunter2"))
    agent, model = scripted(
        call("WebFetch", url="http://x", prompt="p", id_="t_fetch"),
        call("Read", file_path=str(sandbox.project / "x"), id_="t_read"),
        call("Write", file_path=str(sandbox.project / "secrets/x"), content="x", id_="t_path"),
        call("Bash", command="sudo true", id_="t_sudo"),
        call("Bash", command="echo hunter2", id_="t_echo"),
        call("Bash", command="echo again", id_="t_late"),
        say("done"),
        hooks=hooks,
        allowed_tools=["Bash", "Write", "Read", "WebFetch"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    told = {name: text for each in model.asked for name, text in each.tool_results.items()}
    reasons = {
        "t_fetch": "WebFetch is not allowed here.",
        "t_read": "Only these tools are allowed here: Bash, Write, WebFetch.",
        "t_path": "secrets is off limits.",
        "t_sudo": "no sudo",
        "t_late": "Too many tool calls: 2 in 3600 s.",
    }
    assert {name: reason in told[name] for name, reason in reasons.items()} == dict.fromkeys(
        reasons, True
    )
    assert told["t_echo"] == "[redacted]"
    assert files_in(sandbox) == {}


async def test_official_callbacks_work_as_they_are(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    seen: list[Any] = []

    async def check(given: dict[str, Any], tool_use_id: str | None, about: Any) -> dict[str, Any]:
        seen.append((given["tool_name"], tool_use_id, about))
        verdict = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "official no",
        }
        return {"hookSpecificOutput": verdict}

    agent, model = scripted(
        write(sandbox, "file"),
        say("done"),
        hooks={"PreToolUse": [HookMatcher(matcher="Write", hooks=[check], timeout=30)]},
        allowed_tools=["Write"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("write")

    assert seen == [("Write", "toolu_file", {"signal": None})]
    assert "official no" in model.asked[-1].tool_results["toolu_file"]
    assert files_in(sandbox) == {}


async def test_an_async_hook_holds_nothing_up(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    begun = asyncio.Event()

    async def work(_event: PreToolUse) -> None:
        begun.set()
        await asyncio.sleep(NEVER)

    agent, _ = scripted(
        write(sandbox, "file"),
        say("done"),
        hooks=on(PreToolUse, work, run_async=True),
        allowed_tools=["Write"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("write"))
        await begun.wait()

    assert files_in(sandbox) == {"file": "asked for"}


async def test_a_subagents_calls_say_whose_they_are(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    seen: list[tuple[str, str | None, bool]] = []

    def look(event: PreToolUse) -> None:
        seen.append((event.tool_name, event.agent_type, bool(event.agent_id)))

    script = Script(call("Agent", **TASK), say("done"), strict=True)
    script.branch("look around", write(sandbox, "inner"), say("sub done"))
    agent, _ = scripted(
        script,
        hooks=on(PreToolUse, look),
        agents={"helper": {"description": "helps", "prompt": "help", "tools": ["Write"]}},
        allowed_tools=["Write", "Agent"],
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert seen == [("Agent", None, False), ("Write", "helper", True)]
    assert files_in(sandbox) == {"inner": "asked for"}


async def test_a_call_that_the_cli_would_lose_is_not_deferred(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    script = Script(
        call("mcp__functions__pay", amount=7, id_="toolu_own"),
        call("Agent", **TASK),
        write(sandbox, "later"),
        strict=True,
    )
    script.branch("look around", write(sandbox, "inner"), say("sub done"))
    agent, model = scripted(
        script,
        hooks=on(PreToolUse, lambda _: defer(), matcher="Write|mcp__functions__pay"),
        agents={"helper": {"description": "helps", "prompt": "help", "tools": ["Write"]}},
        functions=[pay],
        allowed_tools=["Write", "Agent"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))

    told = {name: text for each in model.asked for name, text in each.tool_results.items()}
    assert "a tool of the program itself" in told["toolu_own"]
    assert "in a subagent" in told["toolu_inner"]
    assert (result.terminal_reason, files_in(sandbox), paid) == ("tool_deferred", {}, [])


async def test_of_two_tools_put_off_at_once_none_is_lost(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _ = scripted(
        calls(write(sandbox, "first"), write(sandbox, "second")),
        hooks=on(PreToolUse, lambda _: defer()),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("write"))
        sent = [each.line for each in await entries_of(session) if each.kind.value == "sent"]

    assert result.terminal_reason == "tool_deferred"
    assert sum(b'"defer"' in line for line in sent) == 1
    assert sum(b"another tool was deferred" in line for line in sent) == 1
    assert files_in(sandbox) == {}
