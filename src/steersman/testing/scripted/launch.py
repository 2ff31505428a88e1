"""Reads the command line and environment of a scripted CLI. Pure."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from steersman._json import JsonDict, JsonObject
from steersman.ports import FileArgument, Launch

DEFAULT_RETRIES = 10
STATE_SWITCHES = (
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one scripted CLI."""

    session_id: str
    resumes: bool
    reruns: bool
    """True if the CLI resumes a turn during which another process was lost."""
    cwd: str
    model: str | None
    permission_mode: str
    may_bypass: bool
    allowed: tuple[str, ...]
    disallowed: tuple[str, ...]
    tools: tuple[str, ...] | None
    """The built-in tools that are available; None for all."""
    can_ask: bool
    shows_partials: bool
    replays: bool
    reports_state: bool
    max_turns: int | None
    max_budget_usd: float | None
    max_retries: int
    tool_timeout: float | None
    connect_timeout: float
    json_schema: JsonObject | None
    sdk_servers: tuple[str, ...]
    """In-process MCP servers in `--mcp-config`; `initialize` may name others."""


def read_launch(launch: Launch) -> Settings:
    """Read the flags and variables that the scripted CLI supports; others are ignored."""
    flags = _flags(launch)
    permissions = _permissions(flags.get("--settings"))
    mode = flags.get("--permission-mode") or "default"
    tools = flags.get("--tools")
    timeout = launch.env.get("MCP_TOOL_TIMEOUT")
    return Settings(
        session_id=flags.get("--session-id") or flags.get("--resume") or str(uuid.uuid4()),
        resumes="--resume" in flags and "--fork-session" not in flags,
        reruns=launch.env.get("CLAUDE_CODE_RESUME_INTERRUPTED_TURN") == "1",
        cwd=launch.cwd or "/",
        model=flags.get("--model"),
        permission_mode=mode,
        may_bypass=mode == "bypassPermissions" or "--allow-dangerously-skip-permissions" in flags,
        allowed=(*_rules(flags.get("--allowedTools")), *permissions.get("allow", ())),
        disallowed=(*_rules(flags.get("--disallowedTools")), *permissions.get("deny", ())),
        tools=None if tools in (None, "default") else _rules(tools),
        can_ask=flags.get("--permission-prompt-tool") == "stdio",
        shows_partials="--include-partial-messages" in flags,
        replays="--replay-user-messages" in flags,
        reports_state=any(launch.env.get(name) for name in STATE_SWITCHES),
        max_turns=int(flags["--max-turns"]) if "--max-turns" in flags else None,
        max_budget_usd=float(flags["--max-budget-usd"]) if "--max-budget-usd" in flags else None,
        max_retries=int(launch.env.get("CLAUDE_CODE_MAX_RETRIES", DEFAULT_RETRIES)),
        tool_timeout=None if timeout is None else int(timeout) / 1000,
        connect_timeout=int(launch.env.get("MCP_TIMEOUT", "30000")) / 1000,
        json_schema=json.loads(flags["--json-schema"]) if "--json-schema" in flags else None,
        sdk_servers=_sdk_servers(flags.get("--mcp-config")),
    )


def _flags(launch: Launch) -> dict[str, str]:
    """Return flags and values, from `--flag=value` or `--flag value`; a bare flag has ""."""
    found: dict[str, str] = {}
    last = ""
    for token in launch.argv[1:]:
        if isinstance(token, FileArgument):
            last, value = token.prefix.rstrip("= "), launch.files[token.name].decode()
            found[last] = value
        elif token.startswith("--"):
            last, _, value = token.partition("=")
            found[last] = value
        elif last:
            found[last] = token
    return found


def _rules(text: str | None) -> tuple[str, ...]:
    """Split a list of rules at commas and spaces outside of brackets."""
    rules = [""]
    depth = 0
    for character in text or "":
        depth += (character == "(") - (character == ")")
        if character in ", " and depth == 0:
            rules.append("")
        else:
            rules[-1] += character
    return tuple(rule for rule in rules if rule)


def _sdk_servers(config: str | None) -> tuple[str, ...]:
    """Return the in-process MCP servers; the CLI silently drops one without a name."""
    if config is None or not config.lstrip().startswith("{"):
        return ()
    servers: JsonDict = json.loads(config).get("mcpServers", {})
    return tuple(
        key for key, server in servers.items() if server.get("type") == "sdk" and server.get("name")
    )


def _permissions(settings: str | None) -> JsonObject:
    if settings is None or not settings.lstrip().startswith("{"):
        return {}
    found: JsonObject = json.loads(settings).get("permissions", {})
    return found
