"""Every event that can be registered fires on the stock CLI, or from our own lifecycle."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from steersman import Hooks, Session
from steersman.control import RegisterRepoRoot
from steersman.hooks import (
    ConfigChange,
    DirectoryAdded,
    Elicitation,
    ElicitationOutput,
    ElicitationResult,
    FileChanged,
    HookEvent,
    InstructionsLoaded,
    MessageDisplay,
    Notification,
    PermissionDenied,
    PermissionRequest,
    PostCompact,
    PostModelSwitch,
    PostToolBatch,
    PostToolUse,
    PostToolUseFailure,
    PreCompact,
    PreModelSwitch,
    PreToolUse,
    Reply,
    SessionEnd,
    SessionStart,
    SessionStartOutput,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    TaskCompleted,
    TaskCreated,
    UserPromptExpansion,
    UserPromptSubmit,
    WorktreeCreate,
    WorktreeCreateOutput,
    WorktreeRemove,
    deny,
)
from steersman.permissions import Allow, ElicitationAnswer
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, fail, say, when
from steersman_conformance.stage import Stage
from tests.live.staging import LIMIT, MakeScripted

pytestmark = pytest.mark.live

TRIES = 8

TASK: dict[str, Any] = {
    "description": "look",
    "prompt": "look around",
    "subagent_type": "helper",
    "run_in_background": False,
}

ASKING_SERVER = """
import json, sys

def tell(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        server = {"name": "ext", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        tell({"id": number, "result": result})
    elif method == "tools/list":
        tell({"id": number, "result": {"tools": [{"name": "ask", "inputSchema": schema}]}})
    elif method == "tools/call":
        asking = number
        params = {"message": "Which colour?", "requestedSchema": schema}
        tell({"id": "e1", "method": "elicitation/create", "params": params})
    elif number == "e1":
        text = json.dumps(message["result"])
        tell({"id": asking, "result": {"content": [{"type": "text", "text": text}]}})
    elif number is not None:
        tell({"id": number, "result": {}})
"""


class Seen:
    """Hooks on events, and the events as they come."""

    def __init__(self, events: Iterable[type[HookEvent]]) -> None:
        self.hooks = Hooks()
        self.events: list[HookEvent] = []
        self._more = asyncio.Event()
        for event in events:
            self.hooks.on(event)(self.take)

    def take(self, event: HookEvent) -> None:
        self.events.append(event)
        self._more.set()

    def of(self, event: type[HookEvent]) -> list[Any]:
        return [each for each in self.events if isinstance(each, event)]

    async def after(self, event: type[HookEvent], provoke: Callable[[int], object]) -> None:
        """Return once the event has come; what leads to it is done again and again."""
        for number in range(TRIES):
            provoke(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    while not self.of(event):
                        self._more.clear()
                        await self._more.wait()
                    return


AROUND_TURNS = (
    *(UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure),
    *(PostToolBatch, MessageDisplay, InstructionsLoaded, SubagentStart, SubagentStop, Stop),
    *(TaskCreated, TaskCompleted, UserPromptExpansion, StopFailure, PreModelSwitch),
    *(PostModelSwitch, DirectoryAdded, PreCompact, PostCompact, WorktreeRemove),
)


def furnish(project: Path) -> None:
    """A command, a file with instructions beside it."""
    (project / ".claude/commands").mkdir(parents=True)
    (project / ".claude/commands/hello.md").write_text("Say hello to $ARGUMENTS.")
    (project / "sub").mkdir()
    (project / "sub/CLAUDE.md").write_text("Be kind.")
    (project / "sub/f.txt").write_text("f")


async def play(session: Session, project: Path) -> None:
    """Do what leads to each of them."""
    for prompt in ("work", "broken"):
        await (await session.send(prompt))
    await (await session.command("/hello world"))
    await session.set_model("claude-haiku-4-5")
    await session.call(RegisterRepoRoot(directory=str(project / "sub")))
    await (await session.send("tree"))
    await (await session.command("/compact"))
    await (await session.command("/clear"))


async def test_a_batch_of_tools_has_its_calls_with_their_answers(
    scripted: MakeScripted,
) -> None:
    seen: list[PostToolBatch] = []
    hooks = Hooks()
    hooks.on(PostToolBatch)(seen.append)
    agent, _model = scripted(
        call("Bash", command="echo one"), say("done"), hooks=hooks, allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    (batch,) = seen
    assert [each["tool_name"] for each in batch.tool_calls] == ["Bash"]
    assert batch.tool_calls[0]["tool_input"]["command"] == "echo one"


async def test_the_events_around_turns_fire(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    project = sandbox.project
    furnish(project)
    seen = Seen((*AROUND_TURNS, SessionStart, SessionEnd))

    @seen.hooks.on(WorktreeCreate)
    def make_worktree(event: WorktreeCreate) -> Reply:
        seen.take(event)
        (project / event.name).mkdir()
        output = WorktreeCreateOutput(worktree_path=str(project / event.name))
        return Reply(hook_specific_output=output)

    script = Script(
        when(
            "work",
            call("Write", file_path=str(project / "a"), content="x"),
            call("Bash", command="false"),
            call("Read", file_path=str(project / "sub/f.txt")),
            call("TaskCreate", subject="do it", description="all of it"),
            call("TaskUpdate", taskId="1", status="completed"),
            call("Agent", **TASK),
            say("worked"),
        ),
        when("broken", fail(400, "bad")),
        when("hello", say("hello")),
        when(
            "tree",
            call("EnterWorktree", name="wt1"),
            call("ExitWorktree", action="remove", discard_changes=True),
            say("back"),
        ),
        strict=True,
    )
    script.branch("look around", say("sub done"))
    agent, _ = scripted(
        script,
        hooks=seen.hooks,
        can_use_tool=lambda *_: Allow(),
        allowed_tools=["TaskCreate", "TaskUpdate", "EnterWorktree", "ExitWorktree"],
        agents={"helper": {"description": "helps", "prompt": "help"}},
        setting_sources=["project"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await play(session, project)

    silent = [each.__name__ for each in (*AROUND_TURNS, WorktreeCreate) if not seen.of(each)]
    assert silent == []
    assert {"compact", "clear"} <= {each.source for each in seen.of(SessionStart)}
    assert "clear" in {each.reason for each in seen.of(SessionEnd)}
    assert all(each.cwd and each.session_id for each in seen.events)


async def test_the_start_and_the_end_are_told_by_the_session_itself(
    scripted: MakeScripted,
) -> None:
    seen = Seen((SessionStart, SessionEnd))

    @seen.hooks.on(SessionStart, "startup")
    async def open_with(_event: SessionStart) -> Reply:
        output = SessionStartOutput(additional_context="It is Sunday.")
        return Reply(hook_specific_output=output)

    agent, model = scripted(say("first"), hooks=seen.hooks)

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await (await session.send("go"))
        async with agent.session(resume=session.id) as resumed:
            pass

    assert [each.source for each in seen.of(SessionStart)] == ["startup", "resume"]
    assert [each.reason for each in seen.of(SessionEnd)] == ["other", "other"]
    assert {each.session_id for each in seen.events} == {session.id, resumed.id}
    assert "It is Sunday." in str(model.asked[0].body)


async def test_watched_files_and_settings_tell_of_changes(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    watched, settings = sandbox.project / "watched.txt", sandbox.project / ".claude/settings.json"
    watched.write_text("0")
    settings.parent.mkdir()
    settings.write_text("{}")
    seen = Seen((ConfigChange,))
    seen.hooks.on(FileChanged, "watched.txt")(seen.take)

    @seen.hooks.on(SessionStart, "compact")
    def watch(_event: SessionStart) -> Reply:
        output = SessionStartOutput(watch_paths=[str(watched)])
        return Reply(hook_specific_output=output)

    agent, _ = scripted(say("hello"), hooks=seen.hooks, setting_sources=["project"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        await (await session.command("/compact"))
        await seen.after(FileChanged, lambda n: watched.write_text(f"{n} again"))
        await seen.after(
            ConfigChange, lambda n: settings.write_text(json.dumps({"env": {"N": str(n)}}))
        )

    assert {(each.file_path, each.event) for each in seen.of(FileChanged)} == {
        (str(watched), "change")
    }
    assert {each.source for each in seen.of(ConfigChange)} == {"project_settings"}


async def test_the_mode_auto_tells_what_it_denies(scripted: MakeScripted) -> None:
    seen = Seen((PermissionDenied,))
    agent, _ = scripted(
        call("Bash", command="git push --force origin main"),
        say("a pity"),
        hooks=seen.hooks,
        permission_mode="auto",
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    (denied,) = seen.of(PermissionDenied)
    assert (denied.tool_name, bool(denied.reason)) == ("Bash", True)


def asking_server(box: CliSandbox) -> dict[str, Any]:
    program = box.root / "server.py"
    program.write_text(ASKING_SERVER)
    return {"ext": {"command": sys.executable, "args": [str(program)]}}


async def answer_of_the_form(
    scripted: MakeScripted, box: CliSandbox, hooks: Hooks
) -> tuple[str, int]:
    """What the server hears, and how often the person was asked."""
    asked: list[object] = []

    def fill_in(question: object) -> ElicitationAnswer:
        asked.append(question)
        return ElicitationAnswer("accept", {"colour": "blue"})

    agent, model = scripted(
        call("mcp__ext__ask", id_="toolu_ask"),
        say("done"),
        hooks=hooks,
        mcp_servers=asking_server(box),
        allowed_tools=["mcp__ext__ask"],
        on_elicitation=fill_in,
    )
    async with asyncio.timeout(LIMIT):
        await agent.run("go")
    heard = json.loads(model.asked[-1].tool_results["toolu_ask"])
    return heard["action"], len(asked)


async def test_forms_of_servers_fire_before_and_after(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    seen = Seen((ElicitationResult, Notification))
    seen.hooks.on(Elicitation, "ext")(seen.take)
    seen.hooks.on(Elicitation, "other")(lambda _: deny("never asked"))

    heard = await answer_of_the_form(scripted, sandbox, seen.hooks)

    assert heard == ("accept", 1)
    assert [type(each) for each in seen.events] == [Elicitation, ElicitationResult, Notification]
    assert seen.of(ElicitationResult)[0].content == {"colour": "blue"}


def raising(_event: Elicitation) -> None:
    raise RuntimeError


async def slow(_event: Elicitation) -> None:
    await asyncio.Event().wait()


def decline(_event: Elicitation) -> Reply:
    return Reply(hook_specific_output=ElicitationOutput(action="decline"))


@pytest.mark.parametrize("callback", [raising, slow, lambda _: 42, lambda _: deny("no"), decline])
async def test_a_form_that_a_guard_refuses_or_fails_on_is_declined(
    scripted: MakeScripted, sandbox: CliSandbox, callback: Callable[..., Any]
) -> None:
    hooks = Hooks()
    hooks.on(Elicitation, timeout=0.2)(callback)

    assert await answer_of_the_form(scripted, sandbox, hooks) == ("decline", 0)


async def test_canary_a_hook_cannot_fill_in_a_form(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """When this fails, `ElicitationOutput` has begun to work: say so in its docstring."""
    filled = ElicitationOutput(action="accept", content={"colour": "red"})
    hooks = Hooks()
    hooks.on(Elicitation)(lambda _: Reply(hook_specific_output=filled))

    assert await answer_of_the_form(scripted, sandbox, hooks) == ("accept", 1)


async def test_canary_the_events_that_are_refused_do_not_fire(
    cli: Path, sandbox: CliSandbox
) -> None:
    """When this fails, an event of `NEVER_CALLED` in `hooks/registry.py` fires: remove it there."""
    project = sandbox.project
    (project / "sub").mkdir()
    trusted = {str(path): {"hasTrustDialogAccepted": True} for path in (project, project / "sub")}
    (sandbox.config / ".claude.json").write_text(json.dumps({"projects": trusted}))
    silent = ("Setup", "TeammateIdle", "CwdChanged")
    stage = Stage(str(cli), sandbox, LIMIT)

    async with (
        asyncio.timeout(LIMIT),
        stage.cli(
            call("Bash", command="cd sub"),
            say("there"),
            say("moved"),
            flags=["--init", "--await-initialize"],
        ) as raw,
    ):
        await raw.initialize(hooks={event: [{"hookCallbackIds": [event]}] for event in silent})
        await raw.prompt("go")
        moved = await raw.ask("set_cwd", path=str(project / "sub"))
        await raw.prompt("on")

    assert moved["response"]["status"] == "ok"
    assert raw.asked("hook_callback") == []
