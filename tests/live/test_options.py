"""What each option does to the stock CLI: on its command line, in its greeting, in its deeds."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from steersman import Options, Session, Toolbox, tool
from steersman.errors import OptionRefused, RequestRefused, StartupError, UsageError
from steersman.journal import Kind
from steersman.messages import (
    Assistant,
    Init,
    Message,
    ModelFallback,
    PromptSuggestion,
    Result,
)
from steersman.options import AgentDefinition, Plugin
from steersman.permissions import Elicitation, ElicitationAnswer
from steersman.skills import discover
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Usage, call, fail, say, stall, when
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    collect,
    entries_of,
    entry_where,
    environ_of,
    processes,
    words_of,
)

pytestmark = pytest.mark.live

OPEN: Mapping[str, Any] = {"memory": True, "skill_commands": True}
"""With these no session has settings of its own."""

ELSEWHERE: Mapping[str, str] = {
    "allowed_tools": "tests/live/test_sizes.py",
    "disallowed_tools": "tests/live/test_sizes.py",
    "functions": "tests/live/test_going_on.py",
    "deps": "tests/live/test_tools.py",
    "require": "tests/live/test_mcp_readiness.py",
    "strict_mcp_config": "tests/live/test_isolation.py",
    "inherit_env": "tests/live/test_isolation.py",
    "setting_sources": "tests/live/test_isolation.py",
    "memory": "tests/live/test_memory_isolation.py",
    "skill_commands": "tests/live/test_policy_handover.py",
    "env": "tests/live/test_secrets.py",
    "policy": "tests/live/test_policy.py",
    "can_use_tool": "tests/live/test_asking.py",
    "ask_every_call": "tests/live/test_permissions.py",
    "on_question": "tests/live/test_asks.py",
    "inbox": "tests/live/test_asks.py",
    "hooks": "tests/live/test_asking.py",
    "cwd": "tests/live/test_broken_starts.py",
    "cli_path": "tests/live/test_broken_starts.py",
    "startup": "tests/live/test_broken_starts.py",
    "session_id": "tests/live/test_sessions.py",
    "resume": "tests/live/test_sessions.py",
    "continue_conversation": "tests/live/test_sessions.py",
    "fork_session": "tests/live/test_sessions.py",
    "resume_session_at": "tests/live/test_sessions.py",
    "resume_drops_turn": "tests/live/test_sessions.py",
    "persist_session": "tests/live/test_sessions.py",
    "title": "tests/live/test_sessions.py",
    "enable_file_checkpointing": "tests/live/test_sessions.py",
    "session_store": "tests/live/test_mirroring.py",
    "session_store_flush": "tests/live/test_mirroring.py",
    "request_timeout": "tests/live/test_sizes.py",
    "close_grace": "tests/live/test_interrupts.py",
    "watchdog": "tests/live/test_watchdog.py",
    "wait": "tests/live/test_keys.py",
    "budget": "tests/live/test_limits.py",
    "limits": "tests/live/test_limits.py",
    "revive": "tests/live/test_revival.py",
    "park": "tests/live/test_parking.py",
    "journal": "tests/live/test_recording.py",
    "flight_recorder": "tests/live/test_recording.py",
    "include_partial_messages": "tests/live/test_prompts_at_once.py",
}
"""Options whose deeds are seen by other tests."""

NOT_SEEN: Mapping[str, str] = {
    "on_user_dialog": "nothing makes the CLI show a dialog without a login",
    "allow_old_cli": "the stock CLI is not too old; tests/_session/test_cli_version.py",
    "allow_unsafe_cli": "no release is unsafe; tests/_session/test_cli_version.py",
    "load_timeout": "ours alone; tests/mirror/test_restore.py",
    "sinks": "ours alone; tests/stores/test_fan_out.py",
    "journal_memory": "ours alone; tests/_session/test_memory.py",
    "max_buffer_size": "ours alone; tests/_protocol/test_framing.py",
}
"""Options whose deeds cannot be seen here, and why."""


def asked_first(model: ScriptedModel) -> Mapping[str, Any]:
    return model.asked[0].body


async def greeting_of(session: Session) -> dict[str, Any]:
    """The initialize request, as it was written."""
    sent = [each.line for each in await entries_of(session) if each.kind is Kind.SENT]
    found: dict[str, Any] = json.loads(sent[0])["request"]
    assert found.pop("subtype") == "initialize"
    return found


async def turned(session: Session, prompt: str = "go") -> tuple[str, list[Message]]:
    """One turn: how it ended, and its messages."""
    turn = await session.send(prompt)
    result = await turn
    assert result.outcome == "completed", result
    return result.text, await collect(turn.messages())


def init_in(messages: list[Message]) -> Init:
    return next(each for each in messages if isinstance(each, Init))


def write(path: Path, content: str | Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_every_option_is_seen_at_work_or_says_why_not() -> None:
    source = Path(__file__).read_text(encoding="utf-8").partition("def test_every_option")[2]
    here = {name for name in OPTIONS if is_given(name, source)}

    assert sorted(here | {*ELSEWHERE, *NOT_SEEN}) == sorted(OPTIONS)
    root = Path(__file__).parents[2]
    assert [n for n in ELSEWHERE if not is_given(n, (root / ELSEWHERE[n]).read_text())] == []


def is_given(option: str, source: str) -> bool:
    """Whether a file gives a value to this option, as a keyword or in a mapping."""
    return re.search(rf'\b{option}=|"{option}": ', source) is not None


OPTIONS = [each.name for each in dataclasses.fields(Options)]


# Flags, variables and fields of the greeting, many at once


async def test_flags_and_variables_reach_the_process(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    log = sandbox.tmp / "debug.log"
    agent, model = scripted(
        say("hi"),
        model="claude-sonnet-4-5",
        fallback_model=["claude-haiku-4-5", "claude-sonnet-4-6"],
        max_turns=7,
        permission_mode="acceptEdits",
        tools=["Read", "Bash", "AskUserQuestion"],
        on_question=print,
        debug_file=log,
        extra_args={"name": "by hand"},
        client_app="mine/1.0",
        tool_config={"askUserQuestion": {"previewFormat": "html"}},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        words, variables = words_of(session.pid), environ_of(session.pid)
        _text, messages = await turned(session)

    assert {
        "--fallback-model=claude-haiku-4-5,claude-sonnet-4-6",
        "--max-turns=7",
        "--name=by hand",
    } <= set(words)
    assert variables["CLAUDE_CODE_QUESTION_PREVIEW_FORMAT"] == "html"
    init = init_in(messages)
    assert (init.model, init.permission_mode) == ("claude-sonnet-4-5", "acceptEdits")
    assert asked_first(model)["model"] == "claude-sonnet-4-5"
    assert {"Read", "Bash", "AskUserQuestion"} >= set(init.tools) - {"ToolSearch"}
    (question,) = [t for t in asked_first(model)["tools"] if t["name"] == "AskUserQuestion"]
    assert "HTML" in question["description"]
    assert "markdown" not in question["description"]
    request = next(each for each in model.requests if each.model_request)
    assert "mine/1.0" in request.headers["user-agent"]
    assert log.stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        (
            {"thinking": {"type": "enabled", "budget_tokens": 3000, "display": "summarized"}},
            {"thinking": {"type": "enabled", "budget_tokens": 3000, "display": "summarized"}},
        ),
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ({"max_thinking_tokens": 0}, {"thinking": {"type": "disabled"}}),
        (
            {"max_thinking_tokens": 2000, "model": "claude-sonnet-4-5"},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        ),
        ({"effort": "low", "model": "claude-sonnet-4-6"}, {"output_config": {"effort": "low"}}),
        (
            {"task_budget": {"total": 50_000}},
            {"output_config": {"task_budget": {"type": "tokens", "total": 50_000}}},
        ),
    ],
    ids="+".join,
)
async def test_how_to_think_reaches_the_model(
    scripted: MakeScripted, options: dict[str, Any], fits: dict[str, dict[str, Any]]
) -> None:
    agent, model = scripted(say("hi"), **{"model": "claude-sonnet-4-5", **options})

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    body = asked_first(model)
    assert {name: fits[name].items() <= body[name].items() for name in fits} == dict.fromkeys(
        fits, True
    )


async def test_betas_stand_in_the_header(scripted: MakeScripted) -> None:
    agent, model = scripted(say("hi"), model="claude-sonnet-4-5", betas=["context-1m-2025-08-07"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    (request,) = [each for each in model.requests if each.model_request]
    assert "context-1m-2025-08-07" in request.headers["anthropic-beta"]


async def test_the_next_model_answers_when_the_first_is_overloaded(scripted: MakeScripted) -> None:
    def answer(request: Any) -> Any:
        return say("from the second") if "haiku" in request.model else fail(529)

    agent, model = scripted(
        Script(answer, answer, answer, answer, answer, answer),
        model="claude-sonnet-4-5",
        fallback_model=["claude-haiku-4-5"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        text, messages = await turned(session)

    assert text == "from the second"
    (told,) = [each for each in messages if isinstance(each, ModelFallback)]
    assert (told.trigger, told.fallback_model) == ("overloaded", "claude-haiku-4-5")
    assert model.asked[0].model != model.asked[-1].model


async def test_a_turn_ends_when_it_has_cost_enough(scripted: MakeScripted) -> None:
    agent, model = scripted(
        call("Bash", command="echo hi").using(Usage(input_tokens=1_000_000)),
        allowed_tools=["Bash"],
        max_budget_usd=0.01,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("spend")
        result = await turn
        (told,) = [each for each in await collect(turn.messages()) if isinstance(each, Result)]

    assert (result.outcome, len(model.asked)) == ("failed", 1)
    assert "budget" in result.reason
    assert (told.subtype, told.is_error, told.result) == ("error_max_budget_usd", True, None)
    assert any("budget" in each for each in told.errors)
    assert (told.total_cost_usd or 0) > 0.01


async def test_the_answer_can_have_a_shape(scripted: MakeScripted) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    agent, _model = scripted(
        call("StructuredOutput", a="b"),
        output_format={"type": "json_schema", "schema": schema},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        greeting = await greeting_of(session)
        result = await (await session.send("shape it"))

    assert greeting["jsonSchema"] == schema
    assert result.structured_output == {"a": "b"}


async def test_what_only_the_greeting_carries_stands_in_it(scripted: MakeScripted) -> None:
    agent, _model = scripted(
        agent_progress_summaries=True,
        prompt_suggestions=True,
        per_task_stop_affordance=True,
        forward_subagent_text=True,
        on_user_dialog=print,
        supported_dialog_kinds=["notice"],
        system_prompt={"type": "custom", "prompt": "You.", "snapshot": False},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        greeting = await greeting_of(session)

    assert greeting == {
        "agentProgressSummaries": True,
        "promptSuggestions": True,
        "perTaskStopAffordance": True,
        "forwardSubagentText": True,
        "supportedDialogKinds": ["notice"],
        "systemPrompt": ["You."],
        "systemPromptSnapshot": False,
    }


# What the user of the program is spared or told


TASK = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}


@pytest.mark.parametrize(("is_spared", "state"), [(True, "running"), (False, "killed")])
async def test_an_interrupt_spares_background_work_that_can_be_stopped_alone(
    scripted: MakeScripted, *, is_spared: bool, state: str
) -> None:
    script = Script(
        when("send someone", call("Agent", TASK), say("sent")),
        when("meanwhile", say("I am here") + stall()),
    ).branch("look around", stall())
    agent, model = scripted(script, per_task_stop_affordance=is_spared)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("send someone"))
        turn = await session.send("meanwhile")
        await asyncio.to_thread(model.wait_for_request, 4, LIMIT)
        await turn.interrupt()
        result = await turn
        tasks = session.tasks

    assert result.outcome == "interrupted"
    assert [each.state for each in tasks] == [state]


async def test_the_next_prompt_is_suggested_after_the_second_turn(scripted: MakeScripted) -> None:
    script = Script(
        when(lambda request: "SUGGESTION MODE" in request.latest, say("now run all the tests")),
        when("this bug", say("fixed")),
        when("that one", say("fixed too")),
    )
    agent, _model = scripted(script, prompt_suggestions=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session, "fix this bug")
        await turned(session, "and that one")
        entry = await entry_where(
            session,
            lambda each: each.kind is Kind.MESSAGE and isinstance(each.message, PromptSuggestion),
        )

    assert isinstance(entry.message, PromptSuggestion)
    assert entry.message.suggestion == "now run all the tests"


# What the model is told


async def test_every_form_of_the_system_prompt_reaches_the_model(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    file = write(sandbox.tmp / "prompt.md", "FROM A FILE")
    own = "You are a Claude agent"
    forms: dict[str, tuple[dict[str, Any], set[str]]] = {
        "text": ({"system_prompt": "A TEXT"}, {"A TEXT"}),
        "list": ({"system_prompt": ["ONE", "TWO"]}, {"ONE", "TWO"}),
        "file": ({"system_prompt": {"type": "file", "path": str(file)}}, {"FROM A FILE"}),
        "preset": (
            {"system_prompt": {"preset": "claude_code", "append": "AND THIS"}},
            {"AND THIS", own},
        ),
        "append": ({"append_system_prompt": "AND THAT"}, {"AND THAT", own}),
    }
    every = {"A TEXT", "ONE", "TWO", "FROM A FILE", "AND THIS", "AND THAT"}
    seen: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}

    for name, (options, _) in forms.items():
        agent, model = scripted(say("hi"))
        async with asyncio.timeout(LIMIT), agent.session(**options) as session:
            await turned(session)
        seen[name] = {text for text in every if text in model.asked[0].system}
        sizes[name] = len(model.asked[0].system)

    assert seen == {name: told - {own} for name, (_, told) in forms.items()}
    # Without `system_prompt` the model gets the CLI's own prompt, which is long.
    assert min(sizes["append"], sizes["preset"]) > max(sizes["text"], sizes["file"]) + 1000


async def test_what_changes_can_be_kept_out_of_the_system_prompt(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(say("hi"), exclude_dynamic_sections=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert str(sandbox.project) not in model.asked[0].system
    assert str(sandbox.project) in json.dumps(asked_first(model)["messages"])


async def test_plan_mode_has_its_own_instructions(scripted: MakeScripted) -> None:
    agent, model = scripted(
        say("hi"),
        permission_mode="plan",
        plan_mode_instructions="DRAW IT FIRST",
        verbatim_prompts=False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert "DRAW IT FIRST" in json.dumps(asked_first(model)["messages"])


async def test_prompts_are_taken_word_by_word_unless_they_should_not_be(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    write(sandbox.project / "note.txt", "CONTENT OF THE NOTE")
    agent, model = scripted(say("one"), say("two"))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await turned(session, "read @note.txt")
        async with agent.session(verbatim_prompts=False) as session:
            await turned(session, "read @note.txt")

    said = [json.dumps(request.body["messages"]) for request in model.asked]
    assert ["CONTENT OF THE NOTE" in each for each in said] == [False, True]


# Who decides


@pytest.mark.parametrize(
    ("behaviour", "is_written"), [("allow", True), ("deny", False)], ids=["allow", "deny"]
)
async def test_a_tool_can_decide(
    scripted: MakeScripted, sandbox: CliSandbox, behaviour: str, *, is_written: bool
) -> None:
    @tool
    def decide(tool_name: str, input: dict[str, Any], tool_use_id: str = "") -> str:  # noqa: A002 - the CLI's word
        """Decide."""
        more = {"updatedInput": input} if behaviour == "allow" else {"message": "no " + tool_name}
        return json.dumps({"behavior": behaviour, **more})

    file = sandbox.project / "file"
    agent, model = scripted(
        call("Write", file_path=str(file), content="x", id_="w"),
        say("done"),
        mcp_servers={"desk": Toolbox("desk", [decide])},
        permission_prompt_tool_name="mcp__desk__decide",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert file.exists() is is_written
    assert ("no Write" in model.asked[-1].tool_results["w"]) is not is_written


async def test_nobody_is_asked_when_nobody_should_be(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    file = sandbox.project / "file"
    agent, _model = scripted(
        call("Write", file_path=str(file), content="x"), say("done"), permission_prompts="none"
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)
        lines = b"\n".join(each.line for each in await entries_of(session))

    assert not file.exists()
    assert b'"can_use_tool"' not in lines


async def test_tools_may_work_in_the_added_directories_and_no_others(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    added, other = sandbox.root / "added", sandbox.root / "other"
    for folder in (added, other):
        folder.mkdir()
    agent, _model = scripted(
        call("Write", file_path=str(added / "file"), content="x"),
        call("Write", file_path=str(other / "file"), content="x"),
        say("done"),
        permission_mode="acceptEdits",
        add_dirs=[added],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert [(each / "file").exists() for each in (added, other)] == [True, False]


async def test_a_session_can_be_let_loose_later_if_that_was_allowed(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(env={"IS_SANDBOX": "1"}, allow_dangerously_skip_permissions=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        loose = await session.set_permission_mode("bypassPermissions")

    assert loose.mode == "bypassPermissions"


async def test_a_session_cannot_be_let_loose_otherwise(scripted: MakeScripted) -> None:
    agent, _model = scripted(env={"IS_SANDBOX": "1"})

    async with asyncio.timeout(LIMIT), agent.session() as session:
        with pytest.raises(RequestRefused):
            await session.set_permission_mode("bypassPermissions")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
async def test_root_may_not_skip_permissions_outside_of_a_sandbox(scripted: MakeScripted) -> None:
    agent, _model = scripted(permission_mode="bypassPermissions")

    async with asyncio.timeout(LIMIT):
        with pytest.raises(StartupError, match="root"):
            await agent.start()
        async with agent.session(env={**agent.options.env, "IS_SANDBOX": "1"}) as session:
            mode = session.initialized.current_permission_mode

    assert mode == "bypassPermissions"


CURIOUS = """
import json, sys

def say(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

for line in sys.stdin:
    heard = json.loads(line)
    method, number = heard.get("method"), heard.get("id")
    if method == "initialize":
        info = {"name": "curious", "version": "1"}
        asked = heard["params"]["protocolVersion"]
        say(id=number, result={"protocolVersion": asked, "capabilities": {"tools": {}},
                               "serverInfo": info})
    elif method == "tools/list":
        say(id=number, result={"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        call = number
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        say(id="question", method="elicitation/create",
            params={"message": "Who are you?", "requestedSchema": schema})
    elif number == "question":
        answer = json.dumps(heard.get("result"))
        say(id=call, result={"content": [{"type": "text", "text": answer}]})
    elif number is not None:
        say(id=number, result={})
"""


async def test_a_question_of_a_tool_server_is_answered(scripted: MakeScripted) -> None:
    heard: list[Elicitation] = []

    def answer(elicitation: Elicitation) -> ElicitationAnswer:
        heard.append(elicitation)
        return ElicitationAnswer(action="accept", content={"name": "Ann"})

    agent, model = scripted(
        call("mcp__curious__ask", id_="ask"),
        say("done"),
        mcp_servers={"curious": {"command": "/usr/bin/env", "args": ["python3", "-c", CURIOUS]}},
        allowed_tools=["mcp__curious__ask"],
        on_elicitation=answer,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert [(each.mcp_server_name, each.message) for each in heard] == [("curious", "Who are you?")]
    assert json.loads(model.asked[-1].tool_results["ask"]) == {
        "action": "accept",
        "content": {"name": "Ann"},
    }


async def test_a_tool_can_stand_in_for_another(scripted: MakeScripted) -> None:
    ran: list[str] = []

    @tool
    def run(command: str) -> str:
        """Run it elsewhere."""
        ran.append(command)
        return "ran elsewhere"

    agent, model = scripted(
        call("Bash", command="ls", id_="b"),
        say("done"),
        functions=[run],
        tool_aliases={"Bash": "mcp__functions__run"},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert ran == ["ls"]
    assert model.asked[-1].tool_results["b"] == "ran elsewhere"


# Settings, in layers


async def settings_of(session: Session) -> dict[str, dict[str, Any]]:
    answer = await session.control("get_settings")
    return {each["source"]: each["settings"] for each in answer["sources"]}


async def test_settings_come_in_layers(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    write(sandbox.config / "settings.json", {"env": {"LAYER": "user"}, "cleanupPeriodDays": 11})
    write(sandbox.project / ".claude" / "settings.json", {"cleanupPeriodDays": 12})
    write(sandbox.project / ".claude" / "settings.local.json", {"cleanupPeriodDays": 13})
    file = write(sandbox.tmp / "mine.json", {"cleanupPeriodDays": 14})
    layers: dict[str, tuple[dict[str, Any], set[str], int | None]] = {
        "none": ({}, set(), None),
        "all": (
            {"setting_sources": ["user", "project", "local"]},
            {"userSettings", "projectSettings", "localSettings"},
            13,
        ),
        "file": ({"settings": file}, {"flagSettings"}, 14),
        "file, sandbox": (
            {"settings": file.name, "cwd": file.parent, "sandbox": {"enabled": False}},
            {"flagSettings"},
            14,
        ),
        "text": ({"settings": '{"cleanupPeriodDays": 15}'}, {"flagSettings"}, 15),
        "mapping": (
            {"settings": {"cleanupPeriodDays": 16}, "setting_sources": ["user"]},
            {"flagSettings", "userSettings"},
            16,
        ),
    }
    agent, _model = scripted(**OPEN)
    seen: dict[str, tuple[set[str], int | None]] = {}

    for name, (options, _, _) in layers.items():
        async with asyncio.timeout(LIMIT), agent.session(**options) as session:
            answer = await session.control("get_settings")
            sources = {each["source"] for each in answer["sources"] if each["settings"]}
            seen[name] = (sources, answer["effective"].get("cleanupPeriodDays"))

    assert seen == {name: (sources, days) for name, (_, sources, days) in layers.items()}


async def test_managed_settings_bind_and_nobody_else_reads_them(scripted: MakeScripted) -> None:
    agent, model = scripted(
        say("hi"),
        managed_settings={"permissions": {"deny": ["Bash", "Read(//s3cret/**)"]}},
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        sources = await settings_of(session)
        everywhere = b"".join(cmdline + environ for _, cmdline, environ in processes())
        await turned(session)

    assert sources["policySettings"]["permissions"]["deny"] == ["Bash", "Read(//s3cret/**)"]
    assert "Bash" not in model.asked[0].tools
    assert b"//s3cret/" not in everywhere


async def test_project_settings_can_lie_elsewhere(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    trusted = sandbox.root / "trusted"
    write(trusted / ".claude" / "settings.json", {"cleanupPeriodDays": 21})
    write(trusted / ".claude" / "skills" / "theirs" / "SKILL.md", "---\ndescription: d\n---\nx")
    for folder, step in ((trusted, ["init", "-q"]), (trusted, ["commit", "-q", "--allow-empty"])):
        git(folder, *step, *(["-m", "x"] if step[0] == "commit" else []))
    git(trusted, "worktree", "add", "-q", str(sandbox.root / "worktree"))
    agent, _model = scripted(
        cwd=sandbox.root / "worktree", setting_sources=["project"], project_config_root=trusted
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        sources = await settings_of(session)
        commands = {each.name for each in session.initialized.commands}

    assert sources["projectSettings"] == {"cleanupPeriodDays": 21}
    assert "theirs" in commands


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, timeout=LIMIT)


async def test_a_sandbox_that_cannot_be_had_stops_the_start(scripted: MakeScripted) -> None:
    """The sandbox's own tools lie outside of the PATH that is given here."""
    agent, _model = scripted(env={"PATH": "/nowhere"}, sandbox={"enabled": True})

    async with asyncio.timeout(LIMIT):
        with pytest.raises(StartupError, match=r"(?i)sandbox"):
            await agent.start()


async def test_the_sandbox_is_a_part_of_the_settings(scripted: MakeScripted) -> None:
    wanted = {"enabled": True, "failIfUnavailable": False, "excludedCommands": ["docker"]}
    agent, _model = scripted(env={"PATH": "/nowhere"}, sandbox=wanted, **OPEN)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        sources = await settings_of(session)

    assert sources["flagSettings"] == {"sandbox": wanted}


async def test_servers_can_come_from_a_file(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    file = write(sandbox.tmp / "servers.json", {"mcpServers": {"near": {"command": "false"}}})
    agent, _model = scripted(mcp_servers=file)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        status = await session.control("mcp_status")

    assert [each["name"] for each in status["mcpServers"]] == ["near"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_the_cli_can_run_as_somebody_else(
    scripted: MakeScripted, sandbox: CliSandbox, cli: Path
) -> None:
    somebody = pwd.getpwnam("nobody")
    for path in (sandbox.root, *sandbox.root.iterdir()):
        os.chown(path, somebody.pw_uid, somebody.pw_gid)
    settings = {"cleanupPeriodDays": 31}
    own = sandbox.root / "claude"
    shutil.copy(cli, own)
    agent, _model = scripted(say("hi"), user="nobody", settings=settings, cli_path=own, **OPEN)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        owner = Path(f"/proc/{session.pid}").stat().st_uid  # noqa: ASYNC240 - no disk is touched
        sources = await settings_of(session)
        await turned(session)

    assert owner == somebody.pw_uid
    assert sources["flagSettings"] == settings


# What it tells


async def test_the_debug_log_is_written_when_it_is_asked_for(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    heard: list[str] = []
    agent, _model = scripted(say("hi"))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await turned(session)
        before = list((sandbox.config / "debug").glob("*.txt"))
        async with agent.session(
            debug=True, stderr=heard.append, extra_args={"debug-to-stderr": None}
        ):
            pass

    assert before == []
    assert "[DEBUG]" in "".join(heard)


async def test_hooks_of_the_settings_can_be_told_of(scripted: MakeScripted) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}
    agent, _model = scripted(
        *(call("Bash", command="echo hi"), say("done")),
        *(call("Bash", command="echo hi"), say("done")),
        allowed_tools=["Bash"],
        settings={"hooks": {"PreToolUse": [hook]}},
    )
    told: dict[bool, bool] = {}

    for is_on in (True, False):
        async with asyncio.timeout(LIMIT), agent.session(include_hook_events=is_on) as session:
            await turned(session)
            lines = [each.line for each in await entries_of(session)]
        told[is_on] = any(b'"hook_started"' in line for line in lines)

    assert told == {True: True, False: False}


# Agents, skills, plugins, output styles, slash commands


AGENT = AgentDefinition(
    description="Looks things up.",
    prompt="YOU LOOK THINGS UP",
    tools=("Read",),
    model="claude-haiku-4-5",
    max_turns=3,
)


async def test_an_agent_runs_in_the_foreground_and_is_heard_if_that_is_wanted(
    scripted: MakeScripted,
) -> None:
    task = {
        "description": "look",
        "prompt": "look it up",
        "subagent_type": "helper",
        "run_in_background": False,
    }
    script = Script(call("Agent", **task, id_="a"), say("done")).branch("look", say("found it"))
    agent, model = scripted(script, agents={"helper": AGENT}, forward_subagent_text=True)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        known = {each.name for each in session.initialized.agents}
        _text, messages = await turned(session)

    helped = next(each for each in model.asked if "YOU LOOK THINGS UP" in each.system)
    assert "helper" in known
    assert "helper" in init_in(messages).agents
    assert (helped.model, helped.tools) == ("claude-haiku-4-5", ("Read",))
    assert "found it" in model.asked[-1].tool_results["a"]
    inside = [m for m in messages if isinstance(m, Assistant) and m.parent_tool_use_id == "a"]
    assert [each.text for each in inside] == ["found it"]


async def test_an_agent_can_lead_the_conversation(scripted: MakeScripted) -> None:
    agent, model = scripted(say("hi"), agents={"helper": AGENT}, agent="helper")

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert "YOU LOOK THINGS UP" in model.asked[0].system


def make_plugin(root: Path) -> Path:
    write(root / ".claude-plugin" / "plugin.json", {"name": "demo", "version": "1.0.0"})
    write(root / "commands" / "greet.md", "---\ndescription: greet\n---\nSAY HELLO TO $ARGUMENTS")
    write(root / "skills" / "sk" / "SKILL.md", "---\nname: sk\ndescription: d\n---\nPLUGIN SKILL")
    write(root / "agents" / "ag.md", "---\nname: ag\ndescription: an agent\n---\nyou")
    write(root / ".mcp.json", {"mcpServers": {"side": {"command": "false"}}})
    return root


@pytest.mark.parametrize("delivery", ["argv", "initialize"])
async def test_a_plugin_brings_commands_skills_and_agents(
    scripted: MakeScripted, sandbox: CliSandbox, delivery: str
) -> None:
    path = make_plugin(sandbox.root / "plug")
    agent, model = scripted(
        say("hi"),
        plugins=[Plugin(path, skip_mcp_discovery=True)],
        plugin_delivery=delivery,
        strict_mcp_config=False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        words = " ".join(words_of(session.pid))
        commands = {each.name for each in session.initialized.commands}
        turn = await session.command("/demo:greet Ann")
        await turn
        init = init_in(await collect(turn.messages()))

    assert {"demo:greet", "demo:sk"} <= commands
    assert {"demo:greet", "demo:sk"} <= set(init.slash_commands)
    assert "demo:ag" in init.agents
    assert [each["name"] for each in init.plugins if each["path"] == str(path)] == ["demo"]
    assert init.mcp_servers == []
    assert "SAY HELLO TO Ann" in model.asked[0].latest
    assert (str(path) in words) is (delivery == "argv")


async def test_a_plugin_that_is_not_there_is_told_before_the_start(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(plugins=[sandbox.root / "missing"])

    with pytest.raises(UsageError, match=r"plugins\[0\]: .*missing"):
        await agent.start()


async def test_only_the_named_skills_can_be_used(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    for name in ("mine", "other"):
        write(
            sandbox.project / ".claude" / "skills" / name / "SKILL.md",
            f"---\nname: {name}\ndescription: the skill {name}\n---\nBODY OF {name}",
        )
    agent, model = scripted(
        call("Skill", skill="mine", id_="mine"),
        call("Skill", skill="other", id_="other"),
        say("done"),
        skills=["mine"],
        verbatim_prompts=False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        _text, messages = await turned(session)

    assert {skill.name for skill in discover(project=sandbox.project)} == {"mine", "other"}
    assert "mine" in init_in(messages).skills
    said = json.dumps(asked_first(model)["messages"])
    assert ("the skill mine" in said, "the skill other" in said) == (True, False)
    everything = json.dumps(model.asked[-1].body["messages"])
    assert ("BODY OF mine" in everything, "BODY OF other" in everything) == (True, False)


async def test_all_skills_can_be_allowed_at_once(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    write(
        sandbox.config / "skills" / "users" / "SKILL.md",
        "---\ndescription: of the user\n---\nBODY OF users",
    )
    agent, model = scripted(
        call("Skill", skill="users"), say("done"), skills="all", setting_sources=["user"]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await turned(session)

    assert [skill.name for skill in discover(user=sandbox.config)] == ["users"]
    assert "BODY OF users" in json.dumps(model.asked[-1].body["messages"])


async def test_output_styles_and_commands_of_the_project_are_listed_and_used(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    write(
        sandbox.project / ".claude" / "output-styles" / "pirate.md",
        "---\nname: pirate\ndescription: arr\n---\nTALK LIKE A PIRATE",
    )
    write(sandbox.project / ".claude" / "commands" / "hail.md", "HAIL $ARGUMENTS")
    agent, model = scripted(
        say("arr"), setting_sources=["project"], settings={"outputStyle": "pirate"}
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        told = session.initialized
        turn = await session.command("/hail Ann")
        await turn
        init = init_in(await collect(turn.messages()))

    assert told.output_style == init.output_style == "pirate"
    assert "pirate" in told.available_output_styles
    assert "hail" in {each.name for each in told.commands}
    assert "TALK LIKE A PIRATE" in json.dumps(asked_first(model))
    assert "HAIL Ann" in model.asked[0].latest


# What cannot be meant never starts


@pytest.mark.parametrize(
    "make",
    [
        lambda start: start(model="opus", fallback_model="opus"),
        lambda start: start(can_use_tool=print, permission_prompt_tool_name="mcp__a__b"),
        lambda start: start(resume_session_at="12345678-1234-4234-8234-123456789abc"),
        lambda start: start(persist_session=False, continue_conversation=True),
        lambda start: start(thinking={"type": "enabled"}),
        lambda start: start(settings="/x.json", sandbox={"enabled": True}),
        lambda start: start(extra_args={"await-initialize": None}),
    ],
)
async def test_what_cannot_be_meant_starts_nothing(
    scripted: MakeScripted, sandbox: CliSandbox, make: Callable[[Any], Any]
) -> None:
    agent, model = scripted()

    with pytest.raises(UsageError):
        await make(agent.start)

    assert model.requests == []
    assert list(sandbox.config.iterdir()) == []


async def test_what_the_cli_itself_refuses_is_told_as_such(scripted: MakeScripted) -> None:
    agent, _model = scripted(extra_args={"no-such-flag": None})

    async with asyncio.timeout(LIMIT):
        with pytest.raises(OptionRefused, match="no-such-flag"):
            await agent.start()
