from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import _json
from steersman._launch.environment import ALWAYS
from steersman._launch.plan import ROWS, LaunchPlan, hook_id, plan, redacted
from steersman.control import Initialize
from steersman.errors import UsageError
from steersman.hooks import Hooks, PostToolUse, PreToolUse
from steersman.inbox import Inbox
from steersman.options import AgentDefinition, Budget, Limits, Options, Park, Plugin, StartupLimits
from steersman.permissions import Policy, allow, ask, deny
from steersman.ports import FileArgument
from steersman.stores import MemoryStore
from steersman.tools import Toolbox
from tests.samples.strategies import ANY_TEXT

FIELDS = [each.name for each in dataclasses.fields(Options)]
UUID = "12345678-1234-4234-8234-123456789abc"
NEW = "87654321-4321-4321-8321-cba987654321"
BASE = (
    "claude",
    "--output-format=stream-json",
    "--input-format=stream-json",
    "--verbose",
    "--replay-user-messages",
    "--permission-prompt-tool=stdio",
)
PARTIALS = "--include-partial-messages"
MODE = "--permission-mode=default"
DEFAULTS = {"--strict-mcp-config", "--setting-sources=", MODE, f"--session-id={NEW}", PARTIALS}
OPEN = {"memory": True, "skill_commands": True}
"""Opens what `test_isolation.py` finds closed."""
CANARY = "canary-sekret-value"
INBOX = Inbox()


OF_SKILLS = "--setting-sources=user,project"


def planned(**options: Any) -> LaunchPlan:
    # Without anything that answers it, `AskUserQuestion` is removed; that has a test of its own.
    given = Options(**{"on_question": print, **OPEN, **options})
    return plan(given, program="claude", host_env={}, new_session_id=NEW)


def added(found: LaunchPlan) -> set[str | FileArgument]:
    """The arguments beside those of every launch."""
    assert found.launch.argv[: len(BASE)] == BASE
    return set(found.launch.argv[len(BASE) :]) - DEFAULTS


def tokens(found: LaunchPlan) -> list[str]:
    return [
        token.prefix if isinstance(token, FileArgument) else token for token in found.launch.argv
    ]


def settings_of(found: LaunchPlan) -> Any:
    return json.loads(found.launch.files.get("settings.json", b"{}"))


def split_as_the_cli_does(text: str) -> list[str]:
    """Commas and spaces split, but not in brackets; a bracket that closes closes all of them."""
    found, rule, is_inside = [], "", False
    for character in text:
        if character in "()":
            is_inside = character == "("
        if character in ", " and not is_inside:
            found.append(rule.strip())
            rule = ""
        else:
            rule += character
    return [each for each in [*found, rule.strip()] if each]


def rules_in(found: LaunchPlan, flag: str, kind: str) -> list[str]:
    """The rules that the CLI reads, from the command line and from the settings."""
    on_argv = [token.removeprefix(flag) for token in tokens(found) if token.startswith(flag)]
    in_settings = settings_of(found).get("permissions", {}).get(kind, [])
    return [*(rule for text in on_argv for rule in split_as_the_cli_does(text)), *in_settings]


HOOKS = Hooks()
HOOKS.on(PreToolUse, "Bash", timeout=5)(lambda _event: None)
HOOKS.on(PostToolUse)(lambda _event: None)
HOOKS.on(PreToolUse)(lambda _event: None)

# option, its value, what it adds to argv, to initialize, to files
ROWS_SEEN: list[tuple[str, Any, set[str | FileArgument], dict[str, Any], dict[str, Any]]] = [
    ("model", "opus", {"--model=opus"}, {}, {}),
    ("fallback_model", "sonnet", {"--fallback-model=sonnet"}, {}, {}),
    ("fallback_model", ("sonnet", "haiku"), {"--fallback-model=sonnet,haiku"}, {}, {}),
    ("system_prompt", None, set(), {}, {}),
    ("system_prompt", "", set(), {"system_prompt": [""]}, {}),
    ("system_prompt", "You.", set(), {"system_prompt": ["You."]}, {}),
    (
        "system_prompt",
        {"type": "preset", "preset": "claude_code", "append": "And."},
        set(),
        {"append_system_prompt": "And."},
        {},
    ),
    ("system_prompt", {"type": "preset", "preset": "claude_code"}, set(), {}, {}),
    (
        "system_prompt",
        {"preset": "claude_code", "snapshot": False, "exclude_dynamic_sections": True},
        set(),
        {"system_prompt_snapshot": False, "exclude_dynamic_sections": True},
        {},
    ),
    ("system_prompt", ("One.", "Two."), set(), {"system_prompt": ["One.", "Two."]}, {}),
    (
        "system_prompt",
        {"type": "custom", "prompt": "You.", "snapshot": True},
        set(),
        {"system_prompt": ["You."], "system_prompt_snapshot": True},
        {},
    ),
    (
        "system_prompt",
        {"type": "file", "path": "/x.md"},
        {"--system-prompt-file=/x.md"},
        {},
        {},
    ),
    ("append_system_prompt", "More.", set(), {"append_system_prompt": "More."}, {}),
    ("exclude_dynamic_sections", True, set(), {"exclude_dynamic_sections": True}, {}),
    (
        "thinking",
        {"type": "adaptive", "display": "omitted"},
        {"--thinking=adaptive", "--thinking-display=omitted"},
        {},
        {},
    ),
    (
        "thinking",
        {"type": "enabled", "budget_tokens": 2000},
        {"--max-thinking-tokens=2000"},
        {},
        {},
    ),
    ("thinking", {"type": "disabled"}, {"--thinking=disabled"}, {}, {}),
    ("max_thinking_tokens", 2000, {"--max-thinking-tokens=2000"}, {}, {}),
    ("max_thinking_tokens", 0, {"--thinking=disabled"}, {}, {}),
    ("effort", "low", {"--effort=low"}, {}, {}),
    ("betas", ("a-1", "b-2"), {"--betas=a-1,b-2"}, {}, {}),
    ("max_turns", 3, {"--max-turns=3"}, {}, {}),
    ("max_budget_usd", 0.5, {"--max-budget-usd=0.5"}, {}, {}),
    ("task_budget", {"total": 5000}, {"--task-budget=5000"}, {}, {}),
    (
        "output_format",
        {"type": "json_schema", "schema": {"type": "object"}},
        set(),
        {"json_schema": {"type": "object"}},
        {},
    ),
    ("tools", None, set(), {}, {}),
    ("tools", (), {"--tools="}, {}, {}),
    ("tools", ("Read", "Bash"), {"--tools=Read,Bash"}, {}, {}),
    ("tools", {"type": "preset", "preset": "claude_code"}, {"--tools=default"}, {}, {}),
    ("allowed_tools", ("Read", "Bash(ls, -a)"), {"--allowedTools=Read,Bash(ls, -a)"}, {}, {}),
    ("disallowed_tools", ("Write",), {"--disallowedTools=Write"}, {}, {}),
    ("tool_aliases", {"Bash": "mcp__a__b"}, set(), {"tool_aliases": {"Bash": "mcp__a__b"}}, {}),
    ("tool_config", {"askUserQuestion": {"previewFormat": "html"}}, set(), {}, {}),
    ("functions", (len,), set(), {}, {}),
    (
        "mcp_servers",
        {"ours": Toolbox("ours", []), "theirs": {"command": "x", "env": {"K": "v"}}},
        {FileArgument("--mcp-config=", "mcp.json")},
        {},
        {"mcp.json": {"mcpServers": {"theirs": {"command": "x", "env": {"K": "v"}}}}},
    ),
    ("mcp_servers", {"ours": Toolbox("ours", [])}, set(), {}, {}),
    ("mcp_servers", Path("/x.json"), {"--mcp-config=/x.json"}, {}, {}),
    ("require", True, set(), {}, {}),
    ("strict_mcp_config", True, set(), {}, {}),
    ("permission_mode", "plan", {"--permission-mode=plan"}, {}, {}),
    (
        "allow_dangerously_skip_permissions",
        True,
        {"--allow-dangerously-skip-permissions"},
        {},
        {},
    ),
    ("permission_prompt_tool_name", None, set(), {}, {}),
    ("permission_prompts", "none", {"--permission-prompts=none"}, {}, {}),
    ("deps", {"db": 1}, set(), {}, {}),
    (
        "policy",
        Policy(
            deny("Bash(rm *)"),
            ask("Bash(git push *)"),
            allow("Bash(git *)"),
            available=["Bash", "Read"],
            auto_approve=["Read"],
            forbid=["WebFetch"],
        ),
        {
            "--tools=Bash,Read",
            "--allowedTools=Read",
            "--disallowedTools=WebFetch,Bash(rm *)",
        },
        {},
        {},
    ),
    ("can_use_tool", print, set(), {}, {}),
    ("ask_every_call", False, set(), {}, {}),
    ("on_question", print, set(), {}, {}),
    ("inbox", INBOX, set(), {}, {}),
    ("plan_mode_instructions", "Draw.", set(), {"plan_mode_instructions": "Draw."}, {}),
    (
        "hooks",
        HOOKS,
        set(),
        {
            "hooks": {
                "PreToolUse": [
                    {
                        "hookCallbackIds": ["hook_0"],
                        "matcher": "Bash",
                        "timeout": 10,
                        "onFailure": "block",
                    },
                    {"hookCallbackIds": ["hook_2"], "onFailure": "block"},
                ],
                "PostToolUse": [{"hookCallbackIds": ["hook_1"]}],
            }
        },
        {},
    ),
    ("on_elicitation", print, set(), {}, {}),
    ("on_user_dialog", print, set(), {}, {}),
    ("supported_dialog_kinds", (), set(), {}, {}),
    (
        "agents",
        MappingProxyType(
            {"a": MappingProxyType({"description": "d", "prompt": "x", "tools": ("Read",)})}
        ),
        set(),
        {"agents": {"a": {"description": "d", "prompt": "x", "tools": ["Read"]}}},
        {},
    ),
    (
        "agents",
        {
            "a": AgentDefinition(
                description="d", prompt="x", disallowed_tools=("Bash",), max_turns=3
            )
        },
        set(),
        {
            "agents": {
                "a": {
                    "description": "d",
                    "prompt": "x",
                    "disallowedTools": ["Bash"],
                    "maxTurns": 3,
                }
            }
        },
        {},
    ),
    ("agent", "helper", {"--agent=helper"}, {}, {}),
    ("skills", "all", {"--allowedTools=Skill", OF_SKILLS}, {}, {}),
    (
        "skills",
        ("mine", "p:q"),
        {"--allowedTools=Skill(mine),Skill(p:q)", OF_SKILLS},
        {"skills": ["mine", "p:q"]},
        {},
    ),
    ("skills", (), set(), {"skills": []}, {}),
    (
        "plugins",
        ("/x", Plugin("/y", skip_mcp_discovery=True)),
        {"--plugin-dir=/x", "--plugin-dir-no-mcp=/y"},
        {},
        {},
    ),
    ("plugin_delivery", "initialize", set(), {}, {}),
    (
        "sandbox",
        {"enabled": True},
        {FileArgument("--settings=", "settings.json")},
        {},
        {"settings.json": {"sandbox": {"enabled": True, "failIfUnavailable": True}}},
    ),
    ("cwd", Path("/x"), set(), {}, {}),
    ("add_dirs", ("/x", Path("-y")), {"--add-dir=/x", "--add-dir=-y"}, {}, {}),
    ("project_config_root", "/x", {"--project-config-root=/x"}, {}, {}),
    ("cli_path", "/bin/claude", set(), {}, {}),
    ("user", "nobody", set(), {}, {}),
    ("env", {"A": "b"}, set(), {}, {}),
    ("inherit_env", True, set(), {}, {}),
    ("client_app", "mine/1.0", set(), {}, {}),
    ("setting_sources", ("user", "local"), {"--setting-sources=user,local"}, {}, {}),
    ("memory", True, set(), {}, {}),
    (
        "skill_commands",
        False,
        {'--settings={"disableSkillShellExecution":true}'},
        {},
        {},
    ),
    ("settings", "/x.json", {"--settings=/x.json"}, {}, {}),
    (
        "settings",
        '{"a":1}',
        {FileArgument("--settings=", "settings.json")},
        {},
        {"settings.json": {"a": 1}},
    ),
    (
        "settings",
        {"a": {"b": ("c",)}},
        {FileArgument("--settings=", "settings.json")},
        {},
        {"settings.json": {"a": {"b": ["c"]}}},
    ),
    (
        "managed_settings",
        {"permissions": {"deny": ["Bash"]}},
        {"--await-initialize", "--managed-settings-in-initialize"},
        {"managed_settings": {"permissions": {"deny": ["Bash"]}}},
        {},
    ),
    ("extra_args", {"bare": None, "with": "-v"}, {"--bare", "--with=-v"}, {}, {}),
    ("session_id", UUID, {f"--session-id={UUID}"}, {}, {}),
    ("resume", UUID, {f"--resume={UUID}", "--await-initialize"}, {}, {}),
    ("continue_conversation", True, {"--continue", "--await-initialize"}, {}, {}),
    ("fork_session", False, set(), {}, {}),
    ("resume_session_at", None, set(), {}, {}),
    ("resume_drops_turn", None, set(), {}, {}),
    ("persist_session", True, set(), {}, {}),
    ("persist_session", False, {"--no-session-persistence"}, {}, {}),
    ("wait", 5, set(), {}, {}),
    ("title", "A walk", set(), {"title": "A walk"}, {}),
    ("enable_file_checkpointing", True, set(), {}, {}),
    ("session_store", MemoryStore(), {"--session-mirror"}, {}, {}),
    ("session_store", None, set(), {}, {}),
    ("session_store_flush", "eager", set(), {}, {}),
    ("load_timeout", 5, set(), {}, {}),
    ("include_partial_messages", True, set(), {}, {}),
    ("include_hook_events", True, {"--include-hook-events"}, {}, {}),
    ("forward_subagent_text", True, set(), {"forward_subagent_text": True}, {}),
    ("agent_progress_summaries", True, set(), {"agent_progress_summaries": True}, {}),
    ("prompt_suggestions", True, set(), {"prompt_suggestions": True}, {}),
    ("per_task_stop_affordance", True, set(), {"per_task_stop_affordance": True}, {}),
    ("verbatim_prompts", False, set(), {}, {}),
    ("debug", True, {"--debug"}, {}, {}),
    ("debug", "hooks,mcp", {"--debug=hooks,mcp"}, {}, {}),
    ("debug_file", Path("/x.log"), {"--debug-file=/x.log"}, {}, {}),
    ("stderr", print, set(), {}, {}),
    ("allow_old_cli", True, set(), {}, {}),
    ("allow_unsafe_cli", True, set(), {}, {}),
    ("startup", StartupLimits(), set(), {}, {}),
    ("request_timeout", 1.0, set(), {}, {}),
    ("close_grace", 1.0, set(), {}, {}),
    ("watchdog", None, set(), {}, {}),
    ("budget", Budget(usd=5), set(), {}, {}),
    ("limits", Limits(is_hard=True), set(), {}, {}),
    ("revive", False, set(), {}, {}),
    ("park", Park(grace=1.0), set(), {}, {}),
    ("journal", "journal.jsonl", set(), {}, {}),
    ("sinks", (), set(), {}, {}),
    ("journal_memory", 1, set(), {}, {}),
    ("flight_recorder", "bundles", set(), {}, {}),
    ("max_buffer_size", 1, set(), {}, {}),
]


def test_every_option_has_a_row_in_the_table_and_one_here() -> None:
    assert sorted(ROWS) == sorted(FIELDS)
    assert list(dict.fromkeys(name for name, *_rest in ROWS_SEEN)) == FIELDS


@pytest.mark.parametrize(
    ("option", "value", "argv", "initialize", "files"),
    ROWS_SEEN,
    ids=[f"{name}-{number}" for number, (name, *_rest) in enumerate(ROWS_SEEN)],
)
def test_an_option_reaches_the_cli_in_one_way(
    option: str,
    value: Any,
    argv: set[str | FileArgument],
    initialize: dict[str, Any],
    files: dict[str, Any],
) -> None:
    found = planned(**{option: value})

    assert added(found) == argv
    assert found.initialize == Initialize(**initialize)
    assert {name: json.loads(content) for name, content in found.launch.files.items()} == files


def test_without_options_nothing_is_loose() -> None:
    found = planned()

    assert set(found.launch.argv[len(BASE) :]) == DEFAULTS
    assert found.initialize == Initialize()
    assert found.launch.env == ALWAYS
    assert (found.launch.cwd, found.launch.files) == (None, {})


def test_directory_and_environment_are_part_of_the_launch() -> None:
    options = Options(cwd=Path("/x"), env={"A": "b"}, inherit_env=("HOST_*",), memory=True)
    host = {"HOST_A": "1", "OTHER": "2"}

    found = plan(options, program="/bin/claude", host_env=host, new_session_id=NEW)

    assert found.launch.argv[0] == "/bin/claude"
    assert found.launch.cwd == "/x"
    assert found.launch.env == {**ALWAYS, "HOST_A": "1", "A": "b"}


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (
            {"enable_file_checkpointing": True},
            {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"},
        ),
        ({"client_app": "mine/1.0"}, {"CLAUDE_AGENT_SDK_CLIENT_APP": "mine/1.0"}),
        (
            {
                "tool_config": {
                    "askUserQuestion": {
                        "previewFormat": "html",
                        "extendedQuestions": True,
                        "optionalDescriptions": True,
                    }
                }
            },
            {
                "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT": "html",
                "CLAUDE_CODE_QUESTION_EXTENDED": "1",
                "CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS": "1",
            },
        ),
    ],
    ids=str,
)
def test_some_options_are_variables(options: dict[str, Any], variables: dict[str, str]) -> None:
    found = planned(**options, env={"A": "b", **variables})

    assert found.launch.env == {**ALWAYS, "A": "b", **variables}


def test_a_switch_that_is_off_sets_no_variable() -> None:
    question = {"extendedQuestions": False, "optionalDescriptions": False}

    found = planned(tool_config={"askUserQuestion": question}, enable_file_checkpointing=False)

    assert found.launch.env == ALWAYS


def test_a_variable_that_differs_from_its_option_is_refused() -> None:
    with pytest.raises(UsageError, match=r"env\['CLAUDE_AGENT_SDK_CLIENT_APP'\]"):
        planned(client_app="mine", env={"CLAUDE_AGENT_SDK_CLIENT_APP": "other"})


def test_the_user_is_part_of_the_launch() -> None:
    assert planned(user="nobody").launch.user == "nobody"


@pytest.mark.parametrize(
    ("options", "is_there"),
    [
        ({}, False),
        ({"permission_prompts": "none"}, False),
        ({"on_question": print}, True),
        ({"can_use_tool": print}, True),
        ({"inbox": INBOX}, True),
        ({"permission_prompt_tool_name": "mcp__desk__decide"}, True),
    ],
)
def test_the_tool_that_asks_the_user_exists_only_if_something_can_answer(
    options: dict[str, Any], *, is_there: bool
) -> None:
    found = planned(**{"on_question": None, "disallowed_tools": ["Glob"], **options})

    taken_away = rules_in(found, "--disallowedTools=", "deny")
    assert taken_away == (["Glob"] if is_there else ["Glob", "AskUserQuestion"])


@pytest.mark.parametrize(
    "options", [{"disallowed_tools": ["Bash"]}, {"policy": Policy(forbid=["Bash"])}]
)
def test_without_bash_no_other_tool_that_runs_commands_exists(options: dict[str, Any]) -> None:
    found = planned(**options)

    assert rules_in(found, "--disallowedTools=", "deny") == ["Bash", "Monitor", "PowerShell"]


def test_a_tool_that_runs_commands_may_be_approved_where_bash_is_denied() -> None:
    found = planned(disallowed_tools=["Bash"], allowed_tools=["Monitor"])

    assert rules_in(found, "--disallowedTools=", "deny") == ["Bash", "PowerShell"]


def test_rules_of_a_policy_are_held_by_the_cli_only_where_its_own_order_agrees() -> None:
    policy = Policy(
        deny("Bash(rm *)"),
        ask("WebFetch"),
        deny("Read(.env)"),
        allow("Edit(src/**)", agents="writer"),
        allow("Edit(docs/**)"),
        ask("Edit(src/**)"),
        deny("Bash", when=lambda _: True),
    )

    found = planned(policy=policy)

    assert rules_in(found, "--disallowedTools=", "deny") == ["Bash(rm *)", "Read(.env)"]
    assert rules_in(found, "--allowedTools=", "allow") == ["Edit(docs/**)"]
    assert settings_of(found) == {}


def test_a_tool_may_decide_in_our_place() -> None:
    found = planned(permission_prompt_tool_name="mcp__desk__decide")

    assert [each for each in tokens(found) if each.startswith("--permission-prompt-tool")] == [
        "--permission-prompt-tool=mcp__desk__decide"
    ]


def test_a_point_in_a_conversation_is_named_beside_it() -> None:
    found = planned(resume=UUID, resume_session_at=NEW, resume_drops_turn=UUID)

    assert added(found) == {
        "--await-initialize",
        f"--resume={UUID}",
        f"--resume-session-at={NEW}",
        f"--resume-drops-turn={UUID}",
    }


def test_dialogs_that_can_be_shown_are_named_in_initialize() -> None:
    found = planned(on_user_dialog=print, supported_dialog_kinds=["notice"])

    assert found.initialize == Initialize(supported_dialog_kinds=["notice"])


@pytest.mark.parametrize("how", ["asked for", "too many"])
def test_plugins_can_be_kept_off_the_command_line(how: str) -> None:
    paths = ["/x"] if how == "asked for" else [f"/plugins/number-{n}" for n in range(200)]
    delivery = "initialize" if how == "asked for" else "argv"

    found = planned(
        plugins=[Plugin(paths[0], skip_mcp_discovery=True), *paths[1:]], plugin_delivery=delivery
    )

    assert added(found) == {"--await-initialize"}
    assert found.initialize.plugins == [
        {"type": "local", "path": paths[0], "skipMcpDiscovery": True},
        *({"type": "local", "path": path} for path in paths[1:]),
    ]


def test_the_cli_waits_for_initialize_once() -> None:
    found = planned(plugins=["/x"], plugin_delivery="initialize", managed_settings={})

    assert tokens(found).count("--await-initialize") == 1


def test_a_skill_that_is_allowed_already_is_not_allowed_twice() -> None:
    found = planned(skills=["mine"], allowed_tools=["Skill(mine)", "Read"])

    assert added(found) == {"--allowedTools=Skill(mine),Read", OF_SKILLS}


def test_the_sandbox_is_merged_into_the_settings() -> None:
    settings = {"sandbox": {"network": {"allowedDomains": ["a"]}, "enabled": False}, "other": 1}
    sandbox = {"enabled": True, "network": {"httpProxyPort": 1}, "failIfUnavailable": False}

    found = planned(settings=settings, sandbox=sandbox)

    assert settings_of(found) == {
        "sandbox": {
            "enabled": True,
            "failIfUnavailable": False,
            "network": {"allowedDomains": ["a"], "httpProxyPort": 1},
        },
        "other": 1,
    }


@pytest.mark.parametrize(
    ("options", "sources"),
    [
        ({"skills": ["greet"]}, "user,project"),
        ({"skills": "all"}, "user,project"),
        ({"skills": ["a:b", "greet"]}, "user,project"),
        ({"skills": ["a:b"]}, ""),
        ({"skills": []}, ""),
        ({"skills": ["greet"], "setting_sources": []}, ""),
        ({"skills": ["greet"], "setting_sources": ["local"]}, "local"),
        ({"setting_sources": None}, ""),
    ],
)
def test_skills_are_looked_for_where_they_are_unless_the_caller_names_the_sources(
    options: dict[str, Any], sources: str
) -> None:
    assert f"--setting-sources={sources}" in planned(**options).launch.argv


def test_a_settings_file_on_this_machine_is_merged_with_what_other_options_add() -> None:
    file = {
        "sandbox": {"network": {"allowedDomains": ["a"]}, "enabled": False},
        "permissions": {"deny": ["Mine"]},
        "other": 1,
    }
    rules = [f"Bash(rule {number})" for number in range(200)]

    words: Any = {"settings": "/x.json", "sandbox": {"enabled": True}, "disallowed_tools": rules}
    given = Options(**{"on_question": print, **OPEN, **words})
    read = {"/x.json": file}.__getitem__
    found = plan(given, program="claude", host_env={}, new_session_id=NEW, read_settings=read)

    assert settings_of(found) == {
        "sandbox": {
            "network": {"allowedDomains": ["a"]},
            "enabled": True,
            "failIfUnavailable": True,
        },
        "permissions": {"deny": ["Mine", *rules]},
        "other": 1,
    }
    assert "--settings=/x.json" not in found.launch.argv


def test_a_settings_file_elsewhere_and_a_sandbox_are_refused_together() -> None:
    with pytest.raises(UsageError, match="if sandbox="):
        planned(settings="/x.json", sandbox={"enabled": True})


def test_a_file_for_the_log_switches_it_on_by_itself() -> None:
    assert added(planned(debug=True, debug_file="/x.log")) == {"--debug-file=/x.log"}


def test_servers_in_this_process_are_named_in_initialize_and_functions_are_approved() -> None:
    found = plan(
        Options(allowed_tools=("Read",)),
        program="claude",
        host_env={},
        new_session_id=NEW,
        servers=["functions", "calc"],
        approved=["mcp__functions__add"],
    )

    assert found.initialize.sdk_mcp_servers == ["functions", "calc"]
    assert "--allowedTools=Read,mcp__functions__add" in found.launch.argv


@pytest.mark.parametrize(
    ("options", "session_id", "flags"),
    [
        ({}, NEW, {f"--session-id={NEW}"}),
        ({"session_id": UUID}, UUID, {f"--session-id={UUID}"}),
        ({"resume": UUID}, UUID, {f"--resume={UUID}"}),
        ({"continue_conversation": True}, None, {"--continue"}),
        ({"resume": f"/a/{UUID}.jsonl"}, UUID, {f"--resume=/a/{UUID}.jsonl"}),
        (
            {"resume": UUID, "fork_session": True},
            NEW,
            {f"--resume={UUID}", "--fork-session", f"--session-id={NEW}"},
        ),
        (
            {"continue_conversation": True, "fork_session": True, "session_id": UUID},
            UUID,
            {"--continue", "--fork-session", f"--session-id={UUID}"},
        ),
    ],
    ids=["new", "chosen", "resumed", "continued", "by-path", "forked", "forked-chosen"],
)
def test_the_conversation_has_an_id_from_the_start_where_one_can_be_known(
    options: dict[str, Any], session_id: str | None, flags: set[str]
) -> None:
    found = planned(**options)

    assert found.session_id == session_id
    waits = {"--await-initialize"} if len(options) > len({"session_id"} & options.keys()) else set()
    assert flags | waits == set(found.launch.argv[len(BASE) :]) - {
        *("--strict-mcp-config", "--setting-sources=", MODE, PARTIALS),
    }


def test_partial_messages_are_sent_unless_they_are_refused() -> None:
    sent = {
        given: PARTIALS in planned(include_partial_messages=given).launch.argv
        for given in (True, None, False)
    }

    assert sent == {True: True, None: True, False: False}


def test_a_plan_has_the_path_of_a_file_that_the_cli_appends_to() -> None:
    path = f"/a/{UUID}.jsonl"

    assert planned(resume=path).path == path
    assert planned(resume=path, fork_session=True).path is None
    assert planned(resume=UUID).path is None


def test_a_preset_and_an_appended_prompt_are_both_sent() -> None:
    preset = {"type": "preset", "preset": "claude_code", "append": "One."}

    found = planned(system_prompt=preset, append_system_prompt="Two.")

    assert found.initialize.append_system_prompt == "One.\n\nTwo."


def test_a_long_list_of_rules_goes_into_the_settings_beside_the_callers_own() -> None:
    rules = tuple(f"Bash(command-{number}:*)" for number in range(300))
    settings = {"permissions": {"deny": ["Mine"], "allow": ["Read"]}, "other": 1}

    found = planned(disallowed_tools=rules, settings=settings)

    assert settings_of(found) == {
        "permissions": {"deny": ["Mine", *rules], "allow": ["Read"]},
        "other": 1,
    }
    assert settings == {"permissions": {"deny": ["Mine"], "allow": ["Read"]}, "other": 1}


def test_many_directories_go_into_the_settings() -> None:
    paths = [f"/workspace/project/{number}" for number in range(300)]

    assert settings_of(planned(add_dirs=paths)) == {"permissions": {"additionalDirectories": paths}}


@pytest.mark.parametrize("permissions", ["none", {"deny": "none"}, None], ids=str)
def test_settings_that_cannot_be_added_to_are_refused(permissions: Any) -> None:
    rules = [f"Bash(command-{number}:*)" for number in range(300)]

    with pytest.raises(UsageError) as caught:
        planned(disallowed_tools=rules, settings={"permissions": permissions})

    assert caught.value.argument == "settings"


def test_a_settings_file_and_a_long_list_are_refused_together_with_a_way_out() -> None:
    rules = [f"Bash(command-{number}:*)" for number in range(300)]

    with pytest.raises(UsageError, match="read the file and pass its content"):
        planned(settings="/x.json", disallowed_tools=rules)


@pytest.mark.parametrize("text", ["{broken", '{"a":1} more', "{}x"])
def test_settings_text_that_is_no_json_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        planned(settings=text.replace("x", CANARY))

    assert caught.value.argument == "settings"
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mcp_servers", {"a": {"command": "x", "args": [Path("/x")]}}),
        ("settings", {"a": object()}),
        ("agents", {"a": {"description": "d", "prompt": "p", "mcp_servers": [{"a": {1, 2}}]}}),
        ("sandbox", {"enabled": object()}),
        ("managed_settings", {"a": object()}),
        ("output_format", {"type": "json_schema", "schema": {"a": object()}}),
    ],
)
def test_what_is_no_json_is_refused_before_anything_runs(option: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        planned(**{option: value})

    assert caught.value.argument.startswith(option)


# Nothing can be smuggled in


TEXTS = ANY_TEXT | st.text("-=a ,()'\"\n", max_size=12).map("-{}".format)


def taken(**options: Any) -> LaunchPlan | None:
    """The plan, or nothing where the options refuse the value."""
    try:
        return planned(**options)
    except UsageError:
        return None


@given(text=TEXTS, option=st.sampled_from(["model", "fallback_model", "resume", "settings"]))
def test_no_text_can_become_a_flag(text: str, option: str) -> None:
    flag = "--" + option.replace("_", "-")

    found = taken(**{option: text})

    if found is not None:
        ours = {token for token in added(found) if isinstance(token, str)}
        assert ours - {"--await-initialize"} in (set(), {f"{flag}={text}"})


@given(paths=st.lists(TEXTS, max_size=3))
def test_no_path_can_become_a_flag(paths: list[str]) -> None:
    found = taken(add_dirs=paths)

    if found is not None:
        assert added(found) == {f"--add-dir={path}" for path in paths}


@given(extra=st.dictionaries(TEXTS | st.from_regex("[a-z][a-z-]{0,5}", fullmatch=True), TEXTS))
def test_an_extra_flag_is_one_token(extra: dict[str, str]) -> None:
    found = taken(extra_args=extra)

    if found is not None:
        assert added(found) == {f"--{name}={value}" for name, value in extra.items()}


@given(tools=st.lists(TEXTS | st.sampled_from(["Read", "Bash"]), max_size=4))
def test_tool_names_stay_as_many_as_were_given(tools: list[str]) -> None:
    found = taken(tools=tools)

    if found is not None:
        (token,) = added(found)
        assert isinstance(token, str)
        assert split_as_the_cli_does(token.removeprefix("--tools=")) == tools


RULES = (
    TEXTS
    | st.text("aB(), \\*:", min_size=1, max_size=12)
    | st.text("ab(), -", max_size=12).map("Bash({})".format)
    | st.sampled_from(["Read", "Bash(x(), Write,Edit)", "Bash((a), b)", "mcp__a__b", "Bash(a, b)"])
)


@given(rules=st.lists(RULES, max_size=5), more=st.sampled_from([0, 100]))
def test_a_rule_stays_one_rule_or_is_refused(rules: list[str], more: int) -> None:
    filler = [f"Bash(filler-{number})" for number in range(more)]

    found = taken(allowed_tools=[*rules, *filler], disallowed_tools=[*rules, *filler])

    if found is not None:
        wanted = sorted([*rules, *filler])
        assert sorted(rules_in(found, "--allowedTools=", "allow")) == wanted
        assert sorted(rules_in(found, "--disallowedTools=", "deny")) == wanted


def test_the_splitter_of_the_cli_forgets_outer_brackets() -> None:
    """As in CLI 2.1.325: a flag, not a depth; it is why nested rules stay off the command line."""
    assert split_as_the_cli_does("Bash(a, b),Read Write") == ["Bash(a, b)", "Read", "Write"]
    assert split_as_the_cli_does("Bash(x(), Write,Edit)") == ["Bash(x()", "Write", "Edit)"]


@given(
    value=TEXTS,
    option=st.sampled_from(["model", "resume", "cwd", "settings", "cli_path"]),
    name=TEXTS,
)
def test_what_is_accepted_can_be_handed_to_the_system(value: str, option: str, name: str) -> None:
    found = taken(**{option: value}, env={"A": value}, extra_args={"flag": name})

    if found is not None:
        for text in (*tokens(found), *found.launch.env.values(), found.launch.cwd or ""):
            assert b"\0" not in os.fsencode(text)


# Nothing long and nothing private on the command line


def everything_large() -> dict[str, Any]:
    return {
        "system_prompt": "x" * 2_000_000,
        "append_system_prompt": "y" * 100_000,
        "agents": {
            f"agent-{number}": {"description": "d" * 100, "prompt": "p" * 1000}
            for number in range(500)
        },
        "mcp_servers": {
            f"server-{number}": {"command": "x" * 100, "args": ["y" * 100]} for number in range(200)
        },
        "allowed_tools": [f"Bash(allowed-{number}:*)" for number in range(300)],
        "disallowed_tools": [f"Bash(denied-{number}:*)" for number in range(300)],
        "add_dirs": [f"/workspace/project/{number}" for number in range(300)],
        "output_format": {"type": "json_schema", "schema": {"enum": ["z" * 100_000]}},
    }


def length(argv: Iterable[str]) -> int:
    return sum(len(token.encode()) + 1 for token in argv)


def test_the_largest_configuration_has_a_short_command_line() -> None:
    found = planned(**everything_large())

    assert length(tokens(found)) < 8 * 1024
    assert max(len(token.encode()) for token in tokens(found)) <= 4096
    assert found.initialize.system_prompt == ["x" * 2_000_000]
    assert len(_json.loads(found.launch.files["mcp.json"])["mcpServers"]) == 200
    assert len(found.initialize.agents or {}) == 500


@pytest.mark.parametrize("path", ["/a", "/" + "ü" * 40, "/" + "\U0001f600" * 300])
@pytest.mark.parametrize("count", [1, 10, 100, 700])
def test_directories_are_measured_by_what_they_take_on_the_command_line(
    path: str, count: int
) -> None:
    found = planned(add_dirs=[path] * count)

    assert length(tokens(found)) < 8 * 1024
    assert max(len(token.encode()) for token in tokens(found)) <= 4096


@given(
    option=st.sampled_from(["model", "fallback_model", "resume", "settings", "cwd"]),
    character=st.sampled_from(["x", "ü", "\U0001f600"]),
    size=st.integers(900, 6000),
)
def test_no_token_is_longer_than_four_kilobytes(option: str, character: str, size: int) -> None:
    found = taken(**{option: character * size})

    if found is not None:
        assert max(len(token.encode()) for token in tokens(found)) <= 4096


def test_a_list_of_tools_too_long_for_the_command_line_is_refused_by_its_name() -> None:
    with pytest.raises(UsageError) as caught:
        planned(tools=[f"Tool{number}" for number in range(1000)])

    assert caught.value.argument == "tools"


def test_secrets_reach_the_cli_but_neither_its_command_line_nor_what_is_shown() -> None:
    found = plan(
        Options(
            system_prompt=CANARY,
            append_system_prompt=CANARY,
            env={"TOKEN": CANARY},
            inherit_env=("HOST_SECRET",),
            settings={"env": {"TOKEN": CANARY}},
            agents={"a": {"description": "d", "prompt": CANARY}},
            managed_settings={"env": {"TOKEN": CANARY}},
            sandbox={"enabled": True, "ripgrep": {"command": CANARY}},
            plan_mode_instructions=CANARY,
            mcp_servers={
                "http": {"type": "http", "url": "http://x", "headers": {"X": CANARY}},
                "stdio": {"command": "x", "env": {"TOKEN": CANARY}},
            },
            output_format={"type": "json_schema", "schema": {"title": CANARY}},
        ),
        program="claude",
        host_env={"HOST_SECRET": CANARY},
        new_session_id=NEW,
    )

    shown = [*tokens(found), *redacted(found.launch), repr(found.launch)]
    assert not any(CANARY in text for text in shown)
    carried = [*found.launch.files.values(), _json.dumps(found.initialize)]
    assert all(CANARY.encode() in content for content in carried)
    assert [found.launch.env[name] for name in ("TOKEN", "HOST_SECRET")] == [CANARY, CANARY]


def test_what_is_shown_hides_the_values_of_flags_we_do_not_know() -> None:
    found = planned(model="opus", extra_args={"api-thing": CANARY, "bare": None}, settings={"a": 1})

    shown = redacted(found.launch)

    assert "--model=opus" in shown
    assert "--api-thing=…" in shown
    assert "--bare" in shown
    assert "--settings=<file>" in shown
    assert not any(CANARY in token for token in shown)


def test_what_is_shown_is_short() -> None:
    shown = redacted(planned(model="m" * 900).launch)

    assert max(map(len, shown)) <= 201


def test_hooks_are_called_by_their_place_in_the_registry() -> None:
    assert [hook_id(number) for number in range(2)] == ["hook_0", "hook_1"]


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({}, "default"),
        ({"permission_mode": "plan"}, "plan"),
        ({"settings": {"permissions": {"defaultMode": "acceptEdits"}}}, "acceptEdits"),
        ({"settings": '{"permissions": {"defaultMode": "dontAsk"}}'}, "dontAsk"),
        ({"settings": {"permissions": {"defaultMode": "manual"}}}, "default"),
        (
            {"settings": {"permissions": {"defaultMode": "plan"}}, "permission_mode": "default"},
            "default",
        ),
        ({"resume": UUID}, "default"),
        ({"setting_sources": ("user", "project")}, "default"),
    ],
)
def test_the_mode_is_always_given(options: dict[str, Any], mode: str) -> None:
    found = planned(**options)

    assert f"--permission-mode={mode}" in found.launch.argv
    assert found.mode == mode


def test_the_mode_of_a_settings_file_on_this_machine_is_given() -> None:
    def read(path: str) -> dict[str, Any]:
        assert path == "/s.json"
        return {"permissions": {"defaultMode": "acceptEdits"}}

    given = Options(settings="/s.json", on_question=print)
    found = plan(given, program="claude", host_env={}, new_session_id=NEW, read_settings=read)

    assert found.mode == "acceptEdits"


def test_a_mode_in_the_settings_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"defaultMode.*got 'yolo', allowed: one of default"):
        planned(settings={"permissions": {"defaultMode": "yolo"}})
