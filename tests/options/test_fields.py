from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import UsageError
from steersman.hooks import Hooks
from steersman.inbox import Inbox
from steersman.journal import Entry
from steersman.options import (
    AgentDefinition,
    Budget,
    Caps,
    Limits,
    Options,
    Park,
    Plugin,
    Revival,
    ShadowedCallbackWarning,
    StartupLimits,
    Watchdog,
    options_from,
)
from steersman.options.table import TABLE
from steersman.permissions import Policy, ask, deny
from steersman.ports import SessionStore
from steersman.stores import MemoryStore
from steersman.tools import Toolbox
from steersman.transcripts import SessionKey, SessionStoreEntry

FIELDS = [each.name for each in dataclasses.fields(Options)]
UUID = "12345678-1234-4234-8234-123456789abc"
CANARY = "canary-sekret-value"


class AppendsAndLoads:
    """A session store without the methods that may be left out."""

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Keep nothing."""

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Find nothing."""


leaves_out: Any = type("LeavesOut", (AppendsAndLoads, SessionStore), {})
"""A session store that inherits the others, and overrides none."""


class KeptNowhere:
    """A sink that forgets everything."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Close nothing."""


def approve(_name: str, _input: dict[str, Any], _context: Any) -> Any:
    """Decide nothing."""


def answer(_asked: object) -> Any:
    """Answer nothing."""


GOOD: dict[str, list[Any]] = {
    "model": [None, "opus", "claude-opus-5-5[1m]", "-dashed"],
    "fallback_model": [None, "sonnet", "sonnet,haiku", ["sonnet", "haiku"]],
    "system_prompt": [
        None,
        "",
        "You.",
        ["You.", "And you."],
        {"type": "preset", "preset": "claude_code", "append": "x"},
        {"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True},
        {"type": "custom", "prompt": "You.", "snapshot": False},
        {"type": "custom", "prompt": ["You.", "And you."]},
        {"type": "file", "path": "/x.md"},
    ],
    "append_system_prompt": [None, "", "More."],
    "exclude_dynamic_sections": [False, True],
    "thinking": [
        None,
        {"type": "adaptive"},
        {"type": "adaptive", "display": "omitted"},
        {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
        {"type": "disabled"},
    ],
    "max_thinking_tokens": [None, 0, 2000],
    "effort": [None, "low", "medium", "high", "xhigh", "max"],
    "betas": [[], ["context-1m-2025-08-07"]],
    "max_turns": [None, 1, 1000],
    "max_budget_usd": [None, 0.01, 5],
    "task_budget": [None, {"total": 5000}],
    "output_format": [None, {"type": "json_schema", "schema": {"type": "object"}}],
    "tools": [None, [], ("Read", "Bash"), {"type": "preset", "preset": "claude_code"}],
    "allowed_tools": [[], ["Read", "Bash(git log:*)", "mcp__calc__*"], ("Edit(src/**)",)],
    "disallowed_tools": [[], ["WebFetch(domain:example.com)"]],
    "tool_aliases": [{}, {"Bash": "mcp__box__run"}],
    "tool_config": [
        None,
        {"askUserQuestion": {"previewFormat": "html"}},
        {"askUserQuestion": {"extendedQuestions": True}},
    ],
    "functions": [[], [len]],
    "mcp_servers": [
        {},
        {"calc": Toolbox("calc", [])},
        {"a": {"command": "x", "args": ["-y"]}, "b-2": {"type": "http", "url": "http://x"}},
        {"s_3": {"type": "sse", "url": "http://x"}},
        "/x.json",
        Path("/x.json"),
    ],
    "require": [(), [], True, False],
    "strict_mcp_config": [True, False],
    "permission_mode": [None, "default", "plan", "bypassPermissions"],
    "allow_dangerously_skip_permissions": [False, True],
    "permission_prompt_tool_name": [None, "mcp__desk__decide"],
    "permission_prompts": [None, "host", "none"],
    "deps": [None, 1, {"db": 1}],
    "policy": [None, Policy()],
    "can_use_tool": [None, approve],
    "ask_every_call": [False],
    "on_question": [None, answer],
    "inbox": [None, Inbox()],
    "plan_mode_instructions": [None, "", "Draw it first."],
    "hooks": [Hooks()],
    "on_elicitation": [None, answer],
    "on_user_dialog": [None, answer],
    "supported_dialog_kinds": [[]],
    "agents": [
        {},
        {"helper": {"description": "helps", "prompt": "You help."}},
        {"helper": AgentDefinition(description="helps", prompt="You help.", tools=("Read",))},
    ],
    "agent": [None, "helper", "plugin:helper"],
    "skills": [None, "all", [], ["mine", "plugin:theirs", "two words"]],
    "plugins": [
        [],
        ["/x", Path("y"), Plugin("/z", skip_mcp_discovery=True)],
        [{"type": "local", "path": "/x"}, {"path": "/x", "skipMcpDiscovery": True}],
    ],
    "plugin_delivery": ["argv", "initialize"],
    "sandbox": [None, {"enabled": True, "network": {"allowedDomains": []}}],
    "cwd": [None, "/x", Path("/x")],
    "add_dirs": [[], ["/x", Path("y")], ["/not utf-8 \udcff"]],
    "project_config_root": [None, "/x", Path("/x")],
    "cli_path": [None, "claude", Path("/bin/claude")],
    "user": [None, "nobody"],
    "env": [{}, {"A_1": "", "_b": "x=y"}],
    "inherit_env": [None, True, False, [], ["A", "B_*"]],
    "client_app": [None, "", "my-app/1.0"],
    "setting_sources": [None, [], ["user", "project", "local"]],
    "memory": [True, False],
    "skill_commands": [True, False],
    "settings": [None, "/x.json", Path("/x.json"), '{"a":1}', {"a": {"b": [1]}}],
    "managed_settings": [None, {}, {"permissions": {"deny": ["Bash"]}}],
    "extra_args": [{}, {"debug-to-stderr": None, "betas": "-x"}],
    "session_id": [None, UUID, UUID.upper()],
    "resume": [None, UUID, "a name", f"/a/{UUID}.jsonl"],
    "continue_conversation": [False, True],
    "fork_session": [False],
    "resume_session_at": [None],
    "resume_drops_turn": [None],
    "persist_session": [True, False],
    "wait": [0, 0.5, 30],
    "title": [None, "A walk in the park"],
    "enable_file_checkpointing": [False, True],
    "session_store": [None, MemoryStore()],
    "session_store_flush": ["batched", "eager"],
    "load_timeout": [0.5, 60],
    "include_partial_messages": [False, True, None],
    "include_hook_events": [False, True],
    "forward_subagent_text": [False, True],
    "agent_progress_summaries": [False, True],
    "prompt_suggestions": [False, True],
    "per_task_stop_affordance": [False, True],
    "verbatim_prompts": [True, False],
    "debug": [False, True, "hooks,!mcp"],
    "debug_file": [None, "/x.log", Path("x.log")],
    "stderr": [None, print],
    "allow_old_cli": [False, True],
    "allow_unsafe_cli": [False, True],
    "startup": [StartupLimits(), StartupLimits(spawn=1)],
    "request_timeout": [1, 0.5],
    "close_grace": [0, 5.0],
    "watchdog": [None, Watchdog(), Watchdog(tool=None)],
    "budget": [None, Budget(usd=5), Budget(tokens=1000)],
    "limits": [Limits(), Limits(turn=Caps(usd=1.0), session=Caps(tool_calls=3))],
    "revive": [True, False, Revival(most=1)],
    "park": [Park(), Park(grace=0)],
    "journal": [None, "journal.jsonl", Path("journal.jsonl"), KeptNowhere()],
    "sinks": [(), [], [KeptNowhere(), KeptNowhere()]],
    "journal_memory": [1, 10**9],
    "flight_recorder": [None, "bundles", Path("bundles")],
    "max_buffer_size": [1, 10**9],
}

NUMBERS: list[Any] = ["5", True, [], float("nan"), float("inf"), -1]
WORDS: list[Any] = ["", 5, b"x", ["x"], "a\nb", "a\0b", "\ud800", "x" * 1001]
RULES: list[Any] = [
    "Read",
    b"Read",
    5,
    None,
    {"Read": 1},
    [5],
    [""],
    ["Read,Write"],
    ["Read Write"],
]
BRACKETS: list[Any] = [
    ["Bash(a"],
    ["Bash)a("],
    ["Bash(a))("],
    ["Bash(a)b"],
    ["(a)"],
    ["Bash(a\nb)"],
    ["Bash(a)(b)"],
    ["Bash(a), Write, Bash(b)"],
]
PATHS: list[Any] = ["", 5, b"/x", "a\0b", "\ud800"]
SWITCH: list[Any] = [None, 1, "yes"]

BAD: dict[str, list[Any]] = {
    "model": WORDS,
    "fallback_model": [
        *(each for each in WORDS if each != ["x"]),
        [],
        [5],
        ["a,b"],
        ["a b"],
        {"a": 1},
    ],
    "system_prompt": [
        5,
        [],
        [5],
        {"type": "preset"},
        {"preset": "other"},
        {"type": "preset", "preset": "claude_code", "apend": "x"},
        {"type": "preset", "preset": "claude_code", "append": 5},
        {"type": "custom"},
        {"type": "custom", "prompt": "x", "snapshot": "yes"},
        {"type": "file"},
        {"type": "file", "path": ""},
    ],
    "append_system_prompt": [5, ["x"], b"x"],
    "exclude_dynamic_sections": SWITCH,
    "thinking": [
        "adaptive",
        {},
        {"type": "on"},
        {"type": "enabled"},
        {"type": "enabled", "budget_tokens": 0},
        {"type": "adaptive", "budget_tokens": 5},
        {"type": "adaptive", "display": "loud"},
        {"type": "disabled", "display": "omitted"},
    ],
    "max_thinking_tokens": [-1, 1.5, "5", True],
    "effort": ["", "huge", 5, ["low"]],
    "betas": [None, "x", [5], ["a,b"], [""]],
    "max_turns": [0, 1.5, 10**400, *NUMBERS],
    "max_budget_usd": [0, 10**400, *NUMBERS],
    "task_budget": [5, {}, {"total": 0}, {"total": 5, "more": 5}, {"total": "5"}],
    "output_format": ["x", {}, {"type": "json_schema"}, {"type": "json_schema", "schema": "x"}],
    "tools": ["Read", 5, [5], ["Read,Write"], ["Bash(ls)"], [""], ["-" * 65], {"preset": "x"}],
    "allowed_tools": [*RULES, *BRACKETS],
    "disallowed_tools": [*RULES, *BRACKETS],
    "tool_aliases": [None, ["Bash"], {"Bash": 5}, {"a b": "c"}, {5: "x"}],
    "tool_config": [
        "html",
        {},
        {"other": {}},
        {"askUserQuestion": {"previewFormat": "pdf"}},
        {"askUserQuestion": {"unheard": True}},
        {"askUserQuestion": {"extendedQuestions": "yes"}},
    ],
    "functions": [None, len, "len", ["len"]],
    "mcp_servers": [
        None,
        ["calc"],
        {"a b": {"command": "x"}},
        {"": {"command": "x"}},
        {5: {"command": "x"}},
        {"a": "x"},
        {"a": {}},
        {"a": {"type": "http"}},
        {"a": {"type": "unheard", "command": "x"}},
        "",
        5,
        '{"servers": {}}',
        "{broken",
        '{"mcpServers": {"a b": {"command": "x"}}}',
    ],
    "require": [None, 1, "calc", [5], [""], ["a b"], ["calc"]],
    "strict_mcp_config": [None, 1, "yes"],
    "permission_mode": ["", "ask", 5, ["plan"]],
    "allow_dangerously_skip_permissions": SWITCH,
    "permission_prompt_tool_name": ["", 5, "a b", "-" * 65],
    "permission_prompts": ["", "all", 5, ["none"]],
    "deps": [],
    "policy": ["allow", {}, Policy],
    "can_use_tool": ["allow", 5],
    "ask_every_call": SWITCH,
    "on_question": ["x", 5],
    "inbox": ["x", 5, []],
    "plan_mode_instructions": [5, ["x"]],
    "hooks": [None, [approve], {"PreToolUs": approve}, {"PreToolUse": 5}, {"Stop": {"on": 1}}],
    "on_elicitation": ["x", 5],
    "on_user_dialog": ["x", 5],
    "supported_dialog_kinds": [None, "x", [5], [""]],
    "agents": [
        None,
        ["a"],
        {"a b": {}},
        {"a": "x"},
        {5: {}},
        {"a": {}},
        {"a": {"description": "d"}},
        {"a": {"description": "", "prompt": "p"}},
        {"a": {"description": "d", "prompt": "p", "tool": ["Read"]}},
        {"a": {"description": "d", "prompt": "p", "tools": "Read"}},
        {"a": {"description": "d", "prompt": "p", "maxTurns": 0}},
    ],
    "agent": WORDS,
    "skills": ["mine", 5, [5], [""], [" mine"], ["a,b"], ["a(b)"], ["*"], ["a:*"]],
    "plugins": [
        None,
        "/x",
        *([each] for each in PATHS),
        [{}],
        [{"type": "git", "path": "/x"}],
        [{"type": "local", "path": 5}],
        [{"path": "/x", "skipMcpDiscovery": "yes"}],
    ],
    "plugin_delivery": [None, "", "file"],
    "sandbox": [True, ["x"]],
    "cwd": PATHS,
    "add_dirs": [None, "/x", Path("/x"), *([each] for each in PATHS)],
    "project_config_root": PATHS,
    "cli_path": PATHS,
    "user": WORDS,
    "env": [
        None,
        "A=b",
        [("A", "b")],
        {"A B": "x"},
        {"1A": "x"},
        {"": "x"},
        {"A=": "x"},
        {"A": 5},
        {"A": "a\0b"},
        {"A": "\ud800"},
        {5: "x"},
    ],
    "inherit_env": ["PATH", 5, [5], {"A": 1}],
    "client_app": [5, "a\nb", "\u20ac", "x" * 1001],
    "setting_sources": ["user", 5, ["all"], [5], [None]],
    "memory": SWITCH,
    "skill_commands": SWITCH,
    "settings": ["", 5, ["x"], b"{}"],
    "managed_settings": ["{}", ["x"], 5],
    "extra_args": [
        None,
        ["x"],
        {"--x": None},
        {"X": None},
        {"": None},
        {"a=b": None},
        {"a": 5},
        {"a": "x\0"},
        {"a": "x" * 4097},
        {"a": "\ud800"},
    ],
    "session_id": ["", "x", 5, UUID + "0", UUID.replace("-", "")],
    "resume": [*WORDS, f"{UUID}.jsonl", f"a/{UUID}.jsonl", "/a/b.jsonl"],
    "continue_conversation": [None, 1, "yes"],
    "fork_session": [None, 1, "yes"],
    "resume_session_at": ["", "x", 5, UUID],
    "resume_drops_turn": ["", "x", 5, UUID],
    "persist_session": SWITCH,
    "wait": [None, -1, "5", True, float("nan")],
    "title": WORDS,
    "enable_file_checkpointing": SWITCH,
    "session_store": [5, "store.db", {}, MemoryStore, print],
    "session_store_flush": [None, "", "lazy", True],
    "load_timeout": [None, 0, -1, "5", True, float("nan")],
    "include_partial_messages": [1, "yes"],
    "include_hook_events": SWITCH,
    "forward_subagent_text": SWITCH,
    "agent_progress_summaries": SWITCH,
    "prompt_suggestions": SWITCH,
    "per_task_stop_affordance": SWITCH,
    "verbatim_prompts": SWITCH,
    "debug": [None, 1, "", "a b"],
    "debug_file": PATHS,
    "stderr": ["x", 5],
    "allow_old_cli": SWITCH,
    "allow_unsafe_cli": SWITCH,
    "startup": [None, 5, {"spawn": 5}],
    "request_timeout": [None, 0, *NUMBERS],
    "close_grace": [None, *NUMBERS],
    "watchdog": [5, True, {"tool": 5}],
    "budget": [5, {"usd": 5}],
    "limits": [None, 5, {"usd": 5}],
    "revive": [None, 3, "yes"],
    "park": [None, True, 60, {"after": 60}],
    "journal": [5, b"path", "", print, KeptNowhere, io.StringIO()],
    "sinks": ["journal.jsonl", 5, None, ["journal.jsonl"], [None], [print], [io.StringIO()]],
    "journal_memory": [None, 0, 1.5, *NUMBERS],
    "flight_recorder": [5, b"path", ""],
    "max_buffer_size": [None, 0, 1.5, *NUMBERS],
}


def names_of(together: Any) -> str:
    """For the names of tests: what functions are called changes from run to run."""
    return "+".join(together) if isinstance(together, dict) else str(together)


def cases(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{number}")
        for name, values in table.items()
        for number, value in enumerate(values)
    ]


def test_every_option_is_in_both_tables() -> None:
    assert list(GOOD) == list(BAD) == FIELDS


@pytest.mark.parametrize(("name", "value"), cases(GOOD))
def test_an_option_takes_what_it_may_be(name: str, value: Any) -> None:
    given_value = getattr(Options(**{name: value}), name)

    assert given_value == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(("name", "value"), cases(BAD))
def test_an_option_refuses_other_values_and_names_those_allowed(name: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Options(**{name: value})

    error = caught.value
    says = r"(got .+, allowed: .+|there is no such .+)"
    assert re.match(rf"{name}(\[.+?\])*(\.\w+)?( key)?: {says}", str(error), re.DOTALL)
    assert error.argument.startswith(name)
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("model", 5, "model: got 5, allowed: a printable string of 1 to 1000 characters"),
        ("max_turns", 0, "max_turns: got 0, allowed: a whole number above 0"),
        (
            "permission_mode",
            "ask",
            (
                "permission_mode: got 'ask', allowed: one of default, acceptEdits, auto,"
                " bypassPermissions, dontAsk, plan"
            ),
        ),
        (
            "allowed_tools",
            "Read",
            (
                "allowed_tools: got 'Read', allowed: a list or tuple\n"
                "What to do: write allowed_tools=[...]"
            ),
        ),
        (
            "setting_sources",
            ["user", "all"],
            "setting_sources[1]: got 'all', allowed: one of user, project, local",
        ),
    ],
)
def test_an_error_names_the_field_the_value_and_what_is_allowed(
    name: str, value: Any, text: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Options(**{name: value})

    assert str(caught.value) == text


@pytest.mark.parametrize(
    "env",
    [
        CANARY,
        [("TOKEN", CANARY)],
        {"TOKEN": CANARY.encode()},
        {"TOKEN": [CANARY]},
        {"TOKEN": CANARY + "\0"},
        {"TO KEN": CANARY},
        {"TOKEN": CANARY, "OTHER": 5},
    ],
    ids=str,
)
def test_the_value_of_a_variable_appears_in_no_error(env: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Options(env=env)

    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("settings", [{"env": {"TOKEN": CANARY}}]),
        ("mcp_servers", [{"headers": CANARY}]),
        ("mcp_servers", {"a": {"headers": {"X": CANARY}}}),
        ("agents", [CANARY]),
        ("extra_args", {"a": CANARY.encode()}),
        ("managed_settings", [{"env": {"TOKEN": CANARY}}]),
        ("sandbox", [CANARY]),
        ("mcp_servers", '{"servers": "' + CANARY + '"}'),
        (
            "agents",
            {"a": {"description": "d", "prompt": "p", "mcpServers": [[CANARY]]}},
        ),
    ],
)
def test_what_may_be_private_appears_in_no_error(name: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Options(**{name: value})

    assert CANARY not in str(caught.value)


def test_private_fields_are_not_shown() -> None:
    secret = {"env": {"TOKEN": CANARY}}
    options = Options(env={"TOKEN": CANARY}, settings=secret, managed_settings=secret)

    assert CANARY not in repr(options)


@pytest.mark.parametrize(
    ("together", "argument"),
    [
        ({"resume": UUID, "continue_conversation": True}, "resume"),
        ({"fork_session": True}, "fork_session"),
        ({"fork_session": True, "session_id": UUID}, "fork_session"),
        ({"session_id": UUID, "resume": UUID}, "session_id"),
        ({"session_id": UUID, "continue_conversation": True}, "session_id"),
        ({"resume_session_at": UUID}, "resume_session_at"),
        ({"resume_session_at": UUID, "continue_conversation": True}, "resume_session_at"),
        ({"resume": UUID, "resume_drops_turn": UUID}, "resume_drops_turn"),
        ({"resume": UUID, "persist_session": False}, "persist_session"),
        ({"continue_conversation": True, "persist_session": False}, "persist_session"),
    ],
    ids=str,
)
def test_contradictory_conversations_are_refused(together: dict[str, Any], argument: str) -> None:
    with pytest.raises(UsageError) as caught:
        Options(**together)

    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("store", "together", "argument"),
    [
        (MemoryStore(), {"persist_session": False}, "session_store"),
        (MemoryStore(), {"enable_file_checkpointing": True}, "session_store"),
        (AppendsAndLoads(), {"continue_conversation": True}, "continue_conversation"),
        (leaves_out(), {"continue_conversation": True}, "continue_conversation"),
    ],
    ids=["not-saved", "with-copies-of-files", "without-a-list", "with-an-inherited-list"],
)
def test_a_store_and_what_it_cannot_keep_are_refused(
    store: Any, together: dict[str, Any], argument: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Options(session_store=store, **together)

    assert caught.value.argument == argument
    assert Options(session_store=store).session_store is store


@pytest.mark.parametrize(
    "together",
    [
        {"session_id": UUID},
        {"resume": UUID},
        {"continue_conversation": True},
        {"resume": UUID, "fork_session": True},
        {"continue_conversation": True, "fork_session": True},
        {"resume": UUID, "fork_session": True, "session_id": UUID},
        {"resume": UUID, "resume_session_at": UUID, "resume_drops_turn": UUID},
    ],
    ids=str,
)
def test_clear_conversations_are_taken(together: dict[str, Any]) -> None:
    options = Options(**together)

    assert {name: getattr(options, name) for name in together} == together


@pytest.mark.parametrize(
    ("together", "argument"),
    [
        ({"model": "opus", "fallback_model": "opus"}, "fallback_model"),
        ({"model": "opus", "fallback_model": "haiku, opus"}, "fallback_model"),
        ({"model": "opus", "fallback_model": ["haiku", "opus"]}, "fallback_model"),
        ({"thinking": {"type": "adaptive"}, "max_thinking_tokens": 5}, "max_thinking_tokens"),
        (
            {"can_use_tool": approve, "permission_prompt_tool_name": "mcp__a__b"},
            "permission_prompt_tool_name",
        ),
        ({"can_use_tool": approve, "permission_prompts": "none"}, "permission_prompts"),
        (
            {"permission_prompt_tool_name": "mcp__a__b", "permission_prompts": "none"},
            "permission_prompts",
        ),
        (
            {"permission_mode": "bypassPermissions", "permission_prompts": "none"},
            "permission_prompts",
        ),
        ({"supported_dialog_kinds": ["notice"]}, "supported_dialog_kinds"),
        ({"ask_every_call": True}, "ask_every_call"),
        ({"inbox": Inbox(), "permission_prompts": "none"}, "permission_prompts"),
        ({"park": Park(after=60.0)}, "park"),
        ({"park": Park(after=60.0), "inbox": Inbox()}, "park"),
        ({"policy": Policy(available=["Read"]), "tools": ["Bash"]}, "tools"),
        ({"policy": Policy(ask("Bash")), "permission_prompts": "none"}, "policy"),
        ({"system_prompt": "You.", "exclude_dynamic_sections": True}, "exclude_dynamic_sections"),
        ({"debug": "hooks", "debug_file": "/x.log"}, "debug"),
    ],
    ids=names_of,
)
def test_what_cannot_be_meant_together_is_refused(together: dict[str, Any], argument: str) -> None:
    with pytest.raises(UsageError) as caught:
        Options(**together)

    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("shadow", "named"),
    [
        ({"permission_mode": "bypassPermissions"}, "bypassPermissions"),
        ({"permission_mode": "dontAsk"}, "dontAsk"),
        ({"tools": ["Bash"], "allowed_tools": ["Bash", "Read"]}, "allowed_tools"),
    ],
)
def test_a_callback_that_will_hardly_be_called_is_warned_of_by_name(
    shadow: dict[str, Any], named: str
) -> None:
    with pytest.warns(ShadowedCallbackWarning, match=named):
        Options(can_use_tool=approve, **shadow)

    Options(can_use_tool=approve, ask_every_call=True, **shadow)
    Options(can_use_tool=approve, policy=Policy(ask("Bash")), **shadow)


@pytest.mark.parametrize(
    "together",
    [
        {"model": "opus", "fallback_model": ["haiku", "sonnet"]},
        {"on_user_dialog": answer, "supported_dialog_kinds": ("notice",)},
        {"system_prompt": {"preset": "claude_code"}, "exclude_dynamic_sections": True},
        {"debug": True, "debug_file": "/x.log"},
        {"can_use_tool": approve, "permission_prompts": "host"},
        {"can_use_tool": approve, "ask_every_call": True},
        {"inbox": Inbox(), "ask_every_call": True},
        {"policy": Policy(deny("Bash")), "tools": ["Bash"], "permission_prompts": "none"},
    ],
    ids=names_of,
)
def test_what_can_be_meant_together_is_taken(together: dict[str, Any]) -> None:
    assert Options(**together)


def test_servers_may_come_as_a_text_of_json() -> None:
    options = Options(mcp_servers='{"mcpServers": {"a": {"command": "x"}}}')

    assert options.mcp_servers == {"a": {"command": "x"}}


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("modle", "model"),
        ("allow_tools", "allowed_tools"),
        ("system_promt", "system_prompt"),
        ("evn", "env"),
        ("permissions_mode", "permission_mode"),
    ],
)
def test_an_unknown_option_gets_a_hint_and_its_value_is_not_shown(typo: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        options_from(None, {typo: CANARY})

    assert caught.value.argument == typo
    assert "did you mean" in caught.value.hint
    assert meant in caught.value.hint
    assert CANARY not in str(caught.value)


def test_an_option_unlike_any_other_gets_no_hint() -> None:
    with pytest.raises(UsageError) as caught:
        options_from(None, {"zzzzzz": 1})

    assert caught.value.hint == ""


@pytest.mark.parametrize(
    ("name", "default"),
    [
        (each.name, each.default)
        for each in dataclasses.fields(Options)
        if each.default is not dataclasses.MISSING
    ],
)
def test_a_default_would_pass_its_check_and_be_kept_as_it_is(name: str, default: object) -> None:
    """So a default need not be checked again in every session."""
    spec = TABLE[name]
    spec.check(name, default)
    stored = default if spec.normalize is None else spec.normalize(name, default)

    assert stored == default


def test_no_overrides_give_the_base_itself() -> None:
    base = Options(model="opus")

    assert options_from(base, {}) is base


def test_overrides_replace_fields_and_leave_the_base_alone() -> None:
    base = Options(model="opus", max_turns=3)

    changed = options_from(base, {"model": "haiku"})

    assert (changed.model, changed.max_turns) == ("haiku", 3)
    assert base.model == "opus"
    assert options_from(None, {}) == Options()


@pytest.mark.parametrize("base", [{}, "opus", 5])
def test_a_base_that_is_no_options_is_refused(base: Any) -> None:
    with pytest.raises(UsageError, match=r"options: got .* allowed: an Options value"):
        options_from(base, {})


def test_overrides_are_checked_like_the_first_values() -> None:
    with pytest.raises(UsageError, match="max_turns: got 0"):
        options_from(Options(), {"max_turns": 0})


@pytest.mark.parametrize("phase", ["spawn", "first_byte", "initialize", "servers"])
@pytest.mark.parametrize("value", [0, -1, "5", None, True, float("nan"), float("inf")])
def test_a_limit_of_the_start_is_a_time(phase: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"startup\.{phase}: got .* allowed: a number above 0"):
        StartupLimits(**{phase: value})


def test_options_are_frozen() -> None:
    options: Any = Options()

    with pytest.raises(dataclasses.FrozenInstanceError):
        options.model = "opus"


@given(
    name=st.sampled_from(FIELDS),
    value=st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.lists(st.text(st.characters()) | st.integers(), max_size=3)
    | st.dictionaries(
        st.text(st.characters()) | st.integers(), st.text() | st.integers(), max_size=2
    ),
)
def test_any_value_is_taken_or_refused_with_a_usage_error(name: str, value: Any) -> None:
    refused = name
    try:
        Options(**{name: value})
    except UsageError as error:
        refused = error.argument

    assert refused.startswith(name)
