"""Options in the official form: every field alone, odd values, and combinations.

`python -m tests.compat.option_rows` runs all of them on the installed official package and writes
what it passes to the CLI to `samples/official_options.json`, with which ours is compared.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.compat.canonical import Line, canonical
from tests.compat.recording import ENVIRONMENT, StandIn

SAMPLE = Path(__file__).parent / "samples" / "official_options.json"
U = "6f1d3f6e-0000-4000-8000-000000000001"
HOST = {
    **ENVIRONMENT,
    "AI_AGENT": "outer",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SESSION_ID": "outer",
    "OTHER": "kept",
}
"""The environment of the program: of one that runs inside a Claude Code session."""


class Store:
    """The least that a store has, and `list_sessions`."""

    async def append(self, key: Any, entries: Any) -> None: ...

    async def load(self, key: Any) -> None:
        return None

    async def list_sessions(self, project_key: str) -> list[Any]:
        return []


async def hook(*_: Any) -> dict[str, Any]:
    """Return no opinion."""
    return {}


def rows(sdk: ModuleType, place: Path) -> dict[str, Line]:
    """Return the options of each row, in the classes of the package `sdk`."""
    return {
        **_prompts(place),
        **_tools(sdk, place),
        **_permissions(sdk),
        **_places(place),
        **_conversations(),
        **_models(),
        **_agents(sdk),
        **_hooks(sdk),
        **_flags(),
        "everything": _everything(sdk, place),
    }


def _each(option: str, **values: Any) -> dict[str, Line]:
    return {f"{option}: {name}": {option: value} for name, value in values.items()}


def _prompts(place: Path) -> dict[str, Line]:
    preset = {"type": "preset", "preset": "claude_code"}
    return {
        "defaults": {},
        **_each(
            "system_prompt",
            text="Be brief.",
            empty="",
            preset=preset,
            append={
                **preset,
                "append": "more",
                "exclude_dynamic_sections": True,
                "snapshot": True,
            },
            no_append={**preset, "append": "", "exclude_dynamic_sections": False},
            custom={"type": "custom", "prompt": "Be brief.", "snapshot": True},
            file={"type": "file", "path": str(place / "prompt.txt")},
            odd={"type": "other"},
        ),
        **_each("settings", path=str(place / "settings.json"), text='{"a":1}', empty=""),
        **_each("sandbox", alone={"enabled": True}, empty={}),
        "sandbox: with a text": {"sandbox": {"enabled": True}, "settings": '{"sandbox":{"x":1}}'},
        "sandbox: with a file": {
            "sandbox": {"enabled": False},
            "settings": str(place / "settings.json"),
        },
        "sandbox: with no file": {"sandbox": {}, "settings": str(place / "missing.json")},
        **_each("setting_sources", one=["user"], none=[], odd=["x"]),
        **_each(
            "output_format",
            schema={"type": "json_schema", "schema": {"type": "object"}},
            empty={"type": "json_schema", "schema": {}},
            other={"type": "text"},
            no_schema={"type": "json_schema"},
            text="json",
        ),
    }


def _tools(sdk: ModuleType, place: Path) -> dict[str, Line]:
    server = {"command": "x", "args": ["1"], "env": {"A": "secret"}, "timeout": 5}
    return {
        **_each(
            "tools",
            list=["Read", "Bash"],
            none=[],
            preset={"type": "preset", "preset": "claude_code"},
            odd=["Read,Bash", "", "bash"],
            tuple=("Read",),
            text="Read",
        ),
        **_each(
            "allowed_tools",
            list=["Read", "Bash(git log:*)"],
            odd=["Read,Write", "", "bash", "Bash("],
            text="Read",
            empty=[""],
        ),
        **_each("disallowed_tools", list=["Read", "Bash"], odd=["Read,Write", "", " "]),
        **_each(
            "mcp_servers",
            external={"a": server, "b": {"type": "http", "url": "http://x", "headers": {}}},
            ws={"w": {"type": "ws", "url": "ws://x"}},
            odd={"my server.x": {"command": "x"}, "": {"type": "??"}},
            path=str(place / "servers.json"),
            path_object=place / "servers.json",
            text='{"mcpServers":{"a":{"command":"x"}}}',
            in_process={"key": sdk.create_sdk_mcp_server("name")},
            nothing=None,
        ),
        **_each("plugins", there=[{"type": "local", "path": str(place)}]),
        **_each("plugins", missing=[{"type": "local", "path": "/missing"}]),
        **_each("plugins", odd=[{"type": "other", "path": "/x"}]),
        **_each("skills", list=["a", "p:b"], all="all", none=[], odd=["a,b"], star=["*"]),
        **_each("skills", text="a", empty=[""]),
        "skills: with sources": {"skills": ["a"], "setting_sources": ["local"]},
        "skills: with rules": {"skills": ["a"], "allowed_tools": ["Read", "Skill", "Skill(a)"]},
    }


def _permissions(sdk: ModuleType) -> dict[str, Line]:
    async def can_use_tool(*_: Any) -> Any:
        return sdk.PermissionResultAllow()

    asks = {"can_use_tool": can_use_tool}
    rules = ["Read", "Bash()", "Write(*)", "Edit(x)", "mcp__a"]
    return {
        **_each("permission_mode", plan="plan", odd="nonsense", empty=""),
        **_each("permission_prompt_tool_name", tool="mcp__a__b", stdio="stdio", empty=""),
        "can_use_tool": asks,
        "can_use_tool: and a tool": {**asks, "permission_prompt_tool_name": "x"},
        "can_use_tool: bypassed": {**asks, "permission_mode": "bypassPermissions"},
        "can_use_tool: dontAsk": {**asks, "permission_mode": "dontAsk"},
        "can_use_tool: shadowed": {**asks, "allowed_tools": rules},
        "can_use_tool: all skills": {**asks, "skills": "all"},
        "can_use_tool: a skill": {**asks, "skills": ["a"]},
    }


def _places(place: Path) -> dict[str, Line]:
    return {
        **_each("cwd", text=str(place), path=place, empty=""),
        **_each("add_dirs", list=["/tmp", Path("/var")], empty=[""]),
        **_each(
            "env",
            own={"A": "B", "CLAUDE_CODE_ENTRYPOINT": "mine", "a.b": "1"},
            outer={"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "mine"},
            no_states={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "0"},
            no_results={"CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "0"},
            number={"A": 1},
        ),
        "env: and cwd": {"env": {"PWD": "/x"}, "cwd": place},
        "env: and an option": {
            "env": {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "false"},
            "enable_file_checkpointing": True,
        },
        **_each("client_app", name="my/1", empty="", odd="ü\n"),
        **_each(
            "extra_args",
            flags={"foo": "bar", "flag": None, "neg": "-1", "empty": "", "number": 1},
            replay={"replay-user-messages": None},
            prompt_tool={"permission-prompt-tool": "stdio"},
            session={"session-id": U},
            partial={"include-partial-messages": None},
            model={"model": "haiku"},
            system_prompt={"system-prompt": "Be brief."},
            sources={"setting-sources": "user"},
            resume={"resume": U, "fork-session": None},
            format={"output-format": "json"},
            long={"agents": "x" * 5_000},
        ),
    }


def _conversations() -> dict[str, Line]:
    return {
        **_each("continue_conversation", yes=True),
        **_each("resume", id=U, title="my title", empty=""),
        **_each("session_id", id=U, odd="nope", empty=""),
        **_each("fork_session", alone=True),
        **_each("resume_session_at", alone=U),
        **_each("resume_drops_turn", empty=""),
        "resume: and continue": {"resume": U, "continue_conversation": True},
        "resume: as another": {"resume": U, "session_id": U},
        "resume: forked": {"resume": U, "fork_session": True},
        "resume: at": {"resume": U, "resume_session_at": U, "resume_drops_turn": U},
        **_each("session_store", store=Store()),
        "session_store: eager": {"session_store": Store(), "session_store_flush": "eager"},
        "session_store: and files": {"session_store": Store(), "enable_file_checkpointing": True},
    }


def _models() -> dict[str, Line]:
    enabled = {"type": "enabled", "budget_tokens": 9}
    return {
        **_each("model", name="opus", empty=""),
        **_each("fallback_model", name="haiku", list="a,b", empty="", sequence=["a", "b"]),
        "fallback_model: the same": {"model": "opus", "fallback_model": "opus"},
        **_each("betas", list=["context-1m-2025-08-07"], odd=["a,b", ""]),
        **_each("max_turns", some=3, none=0, odd=-1),
        **_each("max_budget_usd", some=1.5, none=0, odd=-1.0),
        **_each("max_thinking_tokens", some=5, none=0),
        **_each(
            "thinking",
            adaptive={"type": "adaptive", "display": "omitted"},
            enabled=enabled,
            disabled={"type": "disabled", "display": "omitted"},
            odd={"type": "other"},
            no_budget={"type": "enabled"},
        ),
        "thinking: twice": {"thinking": enabled, "max_thinking_tokens": 4},
        **_each("effort", high="high", odd="huge"),
        **_each("task_budget", some={"total": 5}, none={"total": 0}),
    }


def _agents(sdk: ModuleType) -> dict[str, Line]:
    full = sdk.AgentDefinition(
        description="d",
        prompt="p",
        tools=["Read"],
        disallowedTools=["Bash"],
        model="haiku",
        skills=[],
        memory="user",
        mcpServers=["x", {"y": {"command": "z"}}],
        initialPrompt="i",
        maxTurns=0,
        background=False,
        effort=5,
        permissionMode="plan",
    )
    odd = sdk.AgentDefinition(description="", prompt="")
    return _each("agents", full={"a": full}, odd={"my agent!": odd}, none={})


def _hooks(sdk: ModuleType) -> dict[str, Line]:
    make = sdk.HookMatcher

    def one(**fields: Any) -> list[Any]:
        return [make(hooks=[hook], **fields)]

    several = {
        "PreToolUse": [make(matcher="Bash", hooks=[hook, hook], timeout=3), make(hooks=[hook])],
        "Stop": one(),
    }
    return _each(
        "hooks",
        several=several,
        unknown={"Nope": one()},
        silent={"Setup": one(), "SessionStart": one()},
        no_matchers={"Stop": one(matcher="x")},
        pattern={"PreToolUse": one(matcher="^mcp__.*$")},
        bad_pattern={"PreToolUse": one(matcher="(")},
        no_time={"PreToolUse": one(matcher="*", timeout=0)},
        on_failure={"PreToolUse": [*one(on_failure="continue"), *one(on_failure="block")]},
        no_guard={"Stop": one(on_failure="block")},
        none={},
        no_hooks={"PreToolUse": [make(matcher="Bash")]},
    )


def _flags() -> dict[str, Line]:
    names = (
        *("enable_file_checkpointing", "forward_subagent_text", "include_hook_events"),
        *("include_partial_messages", "strict_mcp_config", "verbatim_prompts"),
    )
    return {
        **{name: {name: True} for name in names},
        "max_buffer_size": {"max_buffer_size": 5_000_000},
        "load_timeout_ms": {"load_timeout_ms": 0},
        "debug_stderr": {"debug_stderr": None},
        "user": {"user": "no-such-user"},
        "stderr": {"stderr": print},
    }


def _everything(sdk: ModuleType, place: Path) -> Line:
    """Return a value for almost every option at once."""
    return {
        **_permissions(sdk)["can_use_tool"],
        **_agents(sdk)["agents: full"],
        **_hooks(sdk)["hooks: several"],
        **_tools(sdk, place)["mcp_servers: external"],
        **dict.fromkeys(("strict_mcp_config", "include_hook_events", "fork_session"), True),
        "add_dirs": [place],
        "allowed_tools": ["Bash(ls:*)"],
        "betas": ["context-1m-2025-08-07"],
        "cwd": place,
        "disallowed_tools": ["WebFetch"],
        "effort": "low",
        "env": {"A": "B"},
        "extra_args": {"foo": "bar"},
        "fallback_model": "haiku",
        "max_budget_usd": 2.5,
        "max_turns": 4,
        "model": "opus",
        "output_format": {"type": "json_schema", "schema": {"type": "object"}},
        "permission_mode": "acceptEdits",
        "resume": U,
        "sandbox": {"enabled": True},
        "session_id": U,
        "setting_sources": ["project"],
        "settings": '{"a":1}',
        "skills": ["a"],
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": "more"},
        "task_budget": {"total": 5},
        "thinking": {"type": "adaptive"},
        "tools": ["Read", "Bash"],
    }


def prepared(place: Path) -> Path:
    """Write the files that rows name, and return their directory."""
    (place / "settings.json").write_text('{"z":1}')
    (place / "servers.json").write_text('{"mcpServers":{"f":{"command":"x"}}}')
    (place / "prompt.txt").write_text("Be brief.")
    return place


async def recorded(sdk: ModuleType, place: Path, names: Iterable[str] = ()) -> dict[str, Line]:
    """Run rows through a client of the package `sdk`, a few at the same time."""
    stand_in, slots = StandIn(place), asyncio.Semaphore(8)
    wanted = {
        name: options
        for name, options in rows(sdk, prepared(place)).items()
        if not names or name in names
    }

    async def one(name: str, options: Line) -> tuple[str, Line]:
        async with slots:
            return name, canonical(await stand_in.run(sdk, options), place, HOST)

    found = await asyncio.gather(*(one(*row) for row in wanted.items()))
    return dict(found)


def main() -> None:
    """Write the sample anew, from the installed official package."""
    import claude_agent_sdk  # noqa: PLC0415 - only here

    os.environ.clear()
    os.environ.update(HOST)
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(recorded(claude_agent_sdk, Path(place).resolve()))
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found.items()]
    version = json.dumps(claude_agent_sdk.__version__)
    SAMPLE.write_text(f'{{"version": {version}, "rows": {{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
