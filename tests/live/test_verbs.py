"""Every verb, put to the stock CLI."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from steersman import Session, Turn, tool
from steersman.control import (
    ApplyFlagSettings,
    BackgroundTasks,
    CancelAsyncMessage,
    EndSession,
    FileSuggestions,
    GenerateSessionTitle,
    GetBinaryVersion,
    GetContextUsage,
    GetHooksListing,
    GetPlan,
    GetSessionCost,
    GetSettings,
    GetTaskOutput,
    GetUsage,
    Initialize,
    Interrupt,
    InterruptReceipt,
    ListModels,
    ListPermissionRules,
    McpCall,
    McpMessage,
    McpReadResource,
    McpReconnect,
    McpServersSet,
    McpSetServers,
    McpStatus,
    McpToggle,
    ReadFile,
    RegisterRepoRoot,
    ReloadOutputStyles,
    ReloadPlugins,
    ReloadSkills,
    RenameSession,
    RewindFiles,
    Rewound,
    SeedReadState,
    SetColor,
    SetHasSubscribers,
    SetMaxThinkingTokens,
    SetMcpPermissionModeOverride,
    SetModel,
    SetPermissionMode,
    SideQuestion,
    StopTask,
    UpdateSettings,
    Verb,
    Withdrawn,
)
from steersman.errors import RequestRefused, RequestTimeout
from steersman.journal import Kind
from steersman.permissions import Deny
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall, when
from tests.live.staging import LIMIT, POLL, MakeScripted, entries_of, entry_where, until

AnswerT = TypeVar("AnswerT")

pytestmark = pytest.mark.live

SERVER = {
    "command": sys.executable,
    "args": [str(Path(__file__).parents[1] / "control" / "external_server.py")],
}

SLOW = 2 * LIMIT
"""For tests that start Python programs, which take their time on a busy machine."""

UNKNOWN = "99999999-9999-4999-8999-999999999999"

PLAN_FILE = re.compile(r"/[^\s\"`\\]*/plans/[^\s\"`\\]+\.md")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def refusal(session: Session, verb: Verb[Any]) -> str:
    """What the CLI says when it says no."""
    with pytest.raises(RequestRefused) as refused:
        await session.call(verb)
    assert refused.value.operation == verb.operation
    return refused.value.reason


async def answer_where(
    session: Session, verb: Verb[AnswerT], fits: Callable[[AnswerT], bool]
) -> AnswerT:
    """The first answer that fits, asking again and again; the caller bounds it."""
    while not fits(answer := await session.call(verb)):  # noqa: ASYNC110 - the CLI tells nobody
        await asyncio.sleep(POLL)
    return answer


async def first_tool_use(turn: Turn) -> str:
    """The id of the first tool call of a turn, once it is there."""
    async for message in turn.messages():
        for block in message.raw.get("message", {}).get("content", ()):
            if isinstance(block, dict) and block.get("type") == "tool_use":
                return str(block["id"])
    raise AssertionError("the turn ended without a tool call")


async def started_task(turn: Turn) -> str:
    """The id of the task that a turn has started."""
    async for message in turn.messages():
        if message.raw.get("subtype") == "task_started":
            return str(message.raw["task_id"])
    raise AssertionError("the turn started no task")


def time_left(session: Session) -> float | None:
    """The seconds until the first open request is given up; nothing if none is open."""
    assert session._parts.slot.running is not None
    deadline = session._parts.slot.running.link.connection.next_deadline()
    return None if deadline is None else deadline - asyncio.get_running_loop().time()


def write_settings(project: Path, settings: Mapping[str, Any]) -> None:
    folder = project / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))


async def test_questions_about_the_session_are_answered(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    (sandbox.project / "CLAUDE.md").write_text("be kind")
    agent, _model = scripted(say("hello"), setting_sources=("project",))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        known = session.initialized
        await (await session.send("hi"))
        again = await session.call(Initialize())
        version = await session.call(GetBinaryVersion())
        models = await session.call(ListModels())
        context = await session.call(GetContextUsage(detail="summary"))
        cost = await session.call(GetSessionCost())
        usage = await session.call(GetUsage(skip_behaviors=True))
        spent = session.cost_usd

    assert version.version == known.claude_code_version
    assert version.build_time
    assert {each.name for each in known.agents} >= {"general-purpose", "Plan"}
    assert known.account.api_key_source == "ANTHROPIC_API_KEY"
    assert all(each.name and each.raw["name"] == each.name for each in known.commands)
    assert again.models == known.models == models.models
    assert {each.value for each in models.models} >= {"default", "opus"}
    assert all(each.resolved_model and each.display_name for each in models.models)
    assert 0 < context.total_tokens < context.max_tokens
    assert "free" in {each.kind for each in context.categories}
    assert [each.path for each in context.memory_files] == [str(sandbox.project / "CLAUDE.md")]
    assert "Total cost" in cost.text
    assert usage.session.total_cost_usd == pytest.approx(spent)
    assert not usage.rate_limits_available


async def test_questions_about_files_settings_and_extensions_are_answered(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    (sandbox.project / "note.txt").write_text("some text\n")
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
    write_settings(sandbox.project, {"permissions": {"deny": ["Read(secret)"]}, "hooks": hooks})
    agent, _model = scripted(
        setting_sources=("project",), can_use_tool=lambda *_: Deny("no"), memory=True
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        known = session.initialized
        settings = await session.call(GetSettings())
        listing = await session.call(GetHooksListing())
        rules = (await session.call(ListPermissionRules())).state
        near = await session.call(FileSuggestions(query=""))
        text = await session.call(ReadFile(path="note.txt", max_bytes=4))
        data = await session.call(ReadFile(path="note.txt", encoding="base64"))
        denied = await refusal(session, ReadFile(path="/etc/hostname"))
        skills = await session.call(ReloadSkills())
        plugins = await session.call(ReloadPlugins(refuse_if_busy=True, hold_on_cache_impact=True))
        styles = await session.call(ReloadOutputStyles())

    assert settings.effective["hooks"] == hooks
    # The flag settings are ours: they close the commands in skills.
    assert [each.source for each in settings.sources] == ["projectSettings", "flagSettings"]
    assert settings.applied["model"]
    assert [(each.event, each.command_text) for each in listing.hooks] == [("Stop", "true")]
    assert {"PreToolUse", "Stop"} <= {each.name for each in listing.event_catalog}
    assert not listing.policy.all_disabled
    assert [(each.behavior, each.rule) for each in rules.rules] == [("deny", "Read(secret)")]
    assert rules.original_cwd == str(sandbox.project)
    assert "note.txt" in {each.path for each in near.suggestions}
    assert (text.contents, text.truncated) == ("some", True)
    assert (data.contents, data.encoding) == ("c29tZSB0ZXh0Cg==", "base64")
    assert text.abs_path == data.abs_path == str(sandbox.project / "note.txt")
    assert "denied" in denied
    assert skills.skills
    assert all(each.name and each.description for each in skills.skills)
    assert (plugins.error_count, plugins.held) == (0, False)
    assert [each.name for each in plugins.agents] == [each.name for each in known.agents]
    assert styles.available_output_styles == known.available_output_styles
    assert "default" in known.available_output_styles


async def test_orders_about_the_conversation_are_obeyed(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    part = sandbox.project / "part"
    part.mkdir()
    agent, model = scripted(say("hello"))
    model.script.branch(lambda request: "side question" in request.latest, say("because"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("hi"))
        aside = await session.call(SideQuestion(question="why?"))
        title = await session.call(GenerateSessionTitle(description="fix a bug", persist=False))
        await session.call(RenameSession(title="A title", source="host", session_id=session.id))
        foreign = await refusal(session, RenameSession(title="x", session_id=UNKNOWN))
        colour = await refusal(session, SetColor(color="blue"))
        await session.call(SetHasSubscribers(has_subscribers=True))
        root = await session.call(RegisterRepoRoot(directory=str(part)))
        twice = await refusal(session, RegisterRepoRoot(directory=str(part)))
        idle = await session.call(Interrupt(cancel_queued=True))
        late = await session.call(CancelAsyncMessage(message_uuid=UNKNOWN))
        with pytest.raises(RequestRefused) as unknown:
            await session.control("make_coffee", sugar=2)

    assert (aside.response, aside.synthetic) == ("because", False)
    assert title.raw == {"title": title.title}
    assert "not the current session" in foreign
    assert "Unsupported" in colour
    assert root.directory == str(part)
    assert "already" in twice
    assert idle == InterruptReceipt()
    assert late == Withdrawn(cancelled=False)
    assert unknown.value.error_code == "unsupported_request"
    titled = [path for path in sandbox.config.rglob("*.jsonl") if "A title" in path.read_text()]
    assert len(titled) == 1


async def test_orders_about_what_comes_next_are_obeyed(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    note = sandbox.project / "note.txt"
    note.write_text("old")
    local = sandbox.project / ".claude" / "settings.local.json"
    edit = call("Edit", file_path=str(note), old_string="old", new_string="new")
    agent, model = scripted(edit, say("done"), setting_sources=("local",))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.call(UpdateSettings(source="localSettings", settings={"outputStyle": "x"}))
        other = await refusal(
            session, UpdateSettings(source="localSettings", settings={"model": "opus"})
        )
        chosen = await session.call(SetModel(model="claude-haiku-4-5"))
        typo = await session.call(SetModel(model="no-such-model"))
        await session.call(ApplyFlagSettings(settings={"model": "claude-sonnet-4-5"}))
        applied = (await session.call(GetSettings())).applied["model"]
        mode = await session.call(SetPermissionMode(mode="acceptEdits"))
        bypass = await refusal(session, SetPermissionMode(mode="bypassPermissions"))
        await session.call(SetMaxThinkingTokens(max_thinking_tokens=4000))
        mtime = note.stat().st_mtime * 1000
        await session.call(SeedReadState(path=str(note), mtime=mtime))
        result = await (await session.send("edit it"))

    assert json.loads(local.read_text()) == {"outputStyle": "x"}
    assert "not allowed: model" in other
    assert (chosen.model, typo.model) == ("claude-haiku-4-5", "no-such-model")
    assert applied == model.asked[-1].model == "claude-sonnet-4-5"
    assert model.asked[-1].body["thinking"]["budget_tokens"] == 4000
    assert mode.mode == "acceptEdits"
    assert "bypassPermissions" in bypass
    assert result.text == "done"
    assert note.read_text() == "new"


async def test_files_go_back_to_what_they_were_when_a_prompt_was_sent(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    note = sandbox.project / "note.txt"
    note.write_text("one\n")
    agent, _model = scripted(
        call("Read", file_path=str(note)),
        call("Edit", file_path=str(note), old_string="one", new_string="two"),
        say("done"),
        env={"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"},
        permission_mode="acceptEdits",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("change it")
        await turn
        trial = await session.call(RewindFiles(user_message_id=turn.uuid, dry_run=True))
        after_trial = note.read_text()
        real = await session.call(RewindFiles(user_message_id=turn.uuid))
        nowhere = await refusal(session, RewindFiles(user_message_id=UNKNOWN))

    assert trial == Rewound(can_rewind=True, files_changed=[str(note)], insertions=1, deletions=1)
    assert after_trial == "two\n"
    assert real == Rewound(can_rewind=True)
    assert note.read_text() == "one\n"
    assert "No file checkpoint" in nowhere


async def statuses(session: Session) -> dict[str, str]:
    """How each tool server is."""
    return {each.name: each.status for each in (await session.call(McpStatus())).servers}


async def test_tool_servers_are_asked_after_switched_and_called(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("hello"), mcp_servers={"outside": SERVER}, functions=[add])
    shout = McpCall(tool="mcp__outside__shout", arguments={"text": "hi"})
    plain = msgspec.structs.replace(shout, result_not_for_model=True)
    asking = msgspec.structs.replace(shout, check_permissions=True)

    async with asyncio.timeout(SLOW), agent.session() as session:
        await (await session.send("hi"))
        await session.call(McpReconnect(server_name="outside"))
        inside = await refusal(session, McpReconnect(server_name="functions"))
        servers = (await session.call(McpStatus(live_reply=True))).servers
        await session.call(McpToggle(server_name="outside", enabled=False))
        off = await statuses(session)
        silent = await refusal(session, shout)
        await session.call(McpToggle(server_name="outside", enabled=True))
        loud, blocks = await session.call(shout), await session.call(plain)
        unapproved = await refusal(session, asking)
        in_time = await session.call(msgspec.structs.replace(asking, timeout_ms=10_000))
        own = await refusal(session, McpCall(tool="mcp__functions__add"))
        panel = await session.call(McpReadResource(server_name="outside", uri="ui://outside/panel"))
        known = await session.call(SetMcpPermissionModeOverride(server_name="outside", mode="auto"))
        strange = await session.call(SetMcpPermissionModeOverride(server_name="x", mode=None))

    outside, functions = servers
    assert (outside.name, outside.status, outside.transport) == ("outside", "connected", "stdio")
    assert (outside.server_info.name, outside.server_info.version) == ("outside", "1.2")
    assert [each.name for each in outside.tools] == ["shout"]
    assert (functions.name, functions.source) == ("functions", "sdk")
    assert "SDK servers" in inside
    assert off == {"outside": "disabled", "functions": "connected"}
    assert "not connected" in silent
    assert (loud.content, loud.structured_content) == ('{"result":"HI"}', {"result": "HI"})
    assert blocks.content == [{"type": "text", "text": "HI"}]
    assert "did not run" in unapproved
    assert (in_time.content, in_time.staging.ok) == ("", False)
    assert in_time.staging.detail in unapproved
    assert "SDK MCP servers" in own
    assert [each.text for each in panel.contents] == ["<p>panel</p>"]
    assert known.warning == ""
    assert "not known" in strange.warning


async def test_tool_servers_in_this_process_go_when_others_are_set(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("hello"), functions=[add])
    broken = {"command": "/no/such/program", "args": []}
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    async with asyncio.timeout(SLOW), agent.session() as session:
        await (await session.send("hi"))
        await session.call(McpMessage(server_name="functions", message=changed))
        before = await statuses(session)
        added = await session.call(McpSetServers(servers={"outside": SERVER, "broken": broken}))
        then = await statuses(session)
        removed = await session.call(McpSetServers(servers={}))
        at_last = await statuses(session)

    assert before == {"functions": "connected"}
    assert (added.added, added.removed) == (["outside", "broken"], ["functions"])
    assert list(added.errors) == ["broken"]
    assert then == {"outside": "connected", "broken": "failed"}
    assert removed == McpServersSet(removed=["outside", "broken"])
    assert at_last == {}


async def test_background_work_is_read_sent_away_and_stopped(scripted: MakeScripted) -> None:
    in_background = call("Bash", command="echo out; sleep 600", run_in_background=True)
    script = Script(
        when("start", in_background, say("on it")),
        when("go", call("Bash", command="echo out; sleep 600"), say("went on")),
    )
    script.branch(lambda request: "<task-notification>" in request.latest, say("noted"))
    agent, _model = scripted(script, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        nothing = await session.call(BackgroundTasks())
        started = await session.send("start")
        await started
        task = await started_task(started)
        output = await answer_where(session, GetTaskOutput(task_id=task), lambda a: a.output != "")
        waiting = await session.send("go")
        away = BackgroundTasks(tool_use_id=await first_tool_use(waiting))
        # A shell can be sent away only some seconds after its start.
        await answer_where(session, away, lambda answer: answer.backgrounded is True)
        result = await waiting
        unknown = await session.call(BackgroundTasks(tool_use_id="no-such-call"))
        none = await refusal(session, GetTaskOutput(task_id="no-such-task"))
        await session.call(StopTask(task_id="no-such-task"))
        await session.call(StopTask(task_id=await started_task(waiting)))
        await session.call(StopTask(task_id=task))
        # The CLI notes the end of a task a moment after it has answered.
        await answer_where(session, GetTaskOutput(task_id=task), lambda a: "[killed]" in a.output)

    assert nothing.backgrounded is None
    assert (output.output, output.total_bytes, output.truncated) == ("out\n", 4, False)
    assert result.text == "went on"
    assert unknown.backgrounded is False
    assert "no shell" in none


async def test_the_plan_of_plan_mode_can_be_read(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    def write(request: ModelRequest) -> Step:
        found = PLAN_FILE.search(json.dumps(request.body))
        assert found is not None
        return call("Write", file_path=found[0], content="# First things first")

    agent, _model = scripted(write, say("planned"), permission_mode="plan")

    async with asyncio.timeout(LIMIT), agent.session() as session:
        before = await session.call(GetPlan())
        await (await session.send("plan"))
        after = await session.call(GetPlan())

    assert not before.exists
    assert (after.exists, after.content) == (True, "# First things first")
    assert Path(after.path).is_relative_to(sandbox.config)


async def test_a_cli_ends_by_itself_when_it_is_told_to(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("never"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.call(EndSession(reason="enough"))
        await until(lambda: session.state not in ("idle", "running"))
        ended = session.state

    assert (ended, session.restarts) == ("completed", 0)


async def test_a_call_that_is_given_up_is_taken_back_and_forgotten(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("fine"))
    model.script.branch(lambda request: "side question" in request.latest, stall(), stall())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        asking = asyncio.create_task(session.call(SideQuestion(question="why?")))
        await entry_where(session, lambda entry: b"control_request_progress" in entry.line)
        patience = time_left(session)
        asking.cancel()
        await asyncio.wait([asking])
        with pytest.raises(RequestTimeout) as late:
            await session.call(SideQuestion(question="how?"), timeout=0.2)
        result = await (await session.send("go on"))
        sent = [each.line for each in await entries_of(session) if each.kind is Kind.SENT]
        afterwards = time_left(session)

    cancels = [line for line in sent if b"control_cancel_request" in line]
    questions = [line for line in sent if b"side_question" in line]
    assert asking.cancelled()
    assert late.value.operation == "side_question"
    assert [json.loads(each)["request_id"] for each in cancels] == [
        json.loads(each)["request_id"] for each in questions
    ]
    assert result.text == "fine"
    assert patience is not None
    assert session.options.request_timeout < patience <= 300
    assert afterwards is None


Exercise = Callable[..., Any]

EXERCISED: dict[type[Verb[Any]], Exercise | str] = {
    Initialize: test_questions_about_the_session_are_answered,
    GetBinaryVersion: test_questions_about_the_session_are_answered,
    ListModels: test_questions_about_the_session_are_answered,
    GetContextUsage: test_questions_about_the_session_are_answered,
    GetSessionCost: test_questions_about_the_session_are_answered,
    GetUsage: test_questions_about_the_session_are_answered,
    GetSettings: test_questions_about_files_settings_and_extensions_are_answered,
    GetHooksListing: test_questions_about_files_settings_and_extensions_are_answered,
    ListPermissionRules: test_questions_about_files_settings_and_extensions_are_answered,
    FileSuggestions: test_questions_about_files_settings_and_extensions_are_answered,
    ReadFile: test_questions_about_files_settings_and_extensions_are_answered,
    ReloadSkills: test_questions_about_files_settings_and_extensions_are_answered,
    ReloadPlugins: test_questions_about_files_settings_and_extensions_are_answered,
    ReloadOutputStyles: test_questions_about_files_settings_and_extensions_are_answered,
    SideQuestion: test_orders_about_the_conversation_are_obeyed,
    GenerateSessionTitle: test_orders_about_the_conversation_are_obeyed,
    RenameSession: test_orders_about_the_conversation_are_obeyed,
    SetColor: test_orders_about_the_conversation_are_obeyed,
    SetHasSubscribers: test_orders_about_the_conversation_are_obeyed,
    RegisterRepoRoot: test_orders_about_the_conversation_are_obeyed,
    UpdateSettings: test_orders_about_what_comes_next_are_obeyed,
    ApplyFlagSettings: test_orders_about_what_comes_next_are_obeyed,
    Interrupt: test_orders_about_the_conversation_are_obeyed,
    CancelAsyncMessage: test_orders_about_the_conversation_are_obeyed,
    SetModel: test_orders_about_what_comes_next_are_obeyed,
    SetPermissionMode: test_orders_about_what_comes_next_are_obeyed,
    SetMaxThinkingTokens: test_orders_about_what_comes_next_are_obeyed,
    SeedReadState: test_orders_about_what_comes_next_are_obeyed,
    RewindFiles: test_files_go_back_to_what_they_were_when_a_prompt_was_sent,
    McpStatus: test_tool_servers_are_asked_after_switched_and_called,
    McpReconnect: test_tool_servers_are_asked_after_switched_and_called,
    McpToggle: test_tool_servers_are_asked_after_switched_and_called,
    McpSetServers: test_tool_servers_in_this_process_go_when_others_are_set,
    McpCall: test_tool_servers_are_asked_after_switched_and_called,
    McpReadResource: test_tool_servers_are_asked_after_switched_and_called,
    McpMessage: test_tool_servers_in_this_process_go_when_others_are_set,
    SetMcpPermissionModeOverride: test_tool_servers_are_asked_after_switched_and_called,
    BackgroundTasks: test_background_work_is_read_sent_away_and_stopped,
    StopTask: test_background_work_is_read_sent_away_and_stopped,
    GetTaskOutput: test_background_work_is_read_sent_away_and_stopped,
    GetPlan: test_the_plan_of_plan_mode_can_be_read,
    EndSession: test_a_cli_ends_by_itself_when_it_is_told_to,
}
"""Who put each verb to the stock CLI; for one that cannot be tried here, a text says why."""
