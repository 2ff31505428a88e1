"""One form for what both packages pass to the CLI.

The packages pass the same thing in different ways: a prompt on argv, or in the initialize request.
Here each has one place. What a package always adds for itself is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.compat.recording import Record

Line = dict[str, Any]

OWN_FLAGS = frozenset(
    {
        *("--input-format", "--output-format", "--verbose", "--include-partial-messages"),
        *("--replay-user-messages", "--await-initialize"),
    }
)
"""Flags that one of the packages always passes, or that steersman adds for its own protocol."""

OWN_VARIABLES = frozenset(
    {
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_CODE_SDK_READS_SESSION_STATE",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
        "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
        *("LC_CTYPE", "PYTEST_CURRENT_TEST", "STEERSMAN_TREE"),
    }
)
"""Variables that one of the packages, Python or pytest sets for itself."""

MODE = "--permission-mode"
LISTS = frozenset({"--allowedTools", "--disallowedTools"})
AS_JSON = frozenset({"--mcp-config", "--settings"})
ALL_SOURCES = "user,project,local"
NEW_SESSION = re.compile(r"(?!6f1d3f6e)[0-9a-f]{8}-[0-9a-f-]{27}")
LONGEST = 1000


def canonical(record: Record, place: Path, host: Mapping[str, str]) -> Line:
    """Return flags and variables of the CLI; `place` is replaced, those of `host` are left out."""
    if record.error is not None:
        return {"error": type(record.error).__name__, "warned": record.warned}
    initialize = dict(record.initialize)
    flags: Line = {}
    for flag, value in _pairs(record.argv):
        _add(flags, initialize, flag, record.files.get(value or "", value))
    if flags.get(MODE) == "default":
        # Without a mode the official package gives none, and ours `default`.
        del flags[MODE]
    initialize["hooks"] = _hooks(initialize.get("hooks") or {}) or None
    found = {
        "flags": flags,
        "env": {
            name: value
            for name, value in record.env.items()
            if host.get(name) != value and name not in OWN_VARIABLES
        },
        "removed": sorted(set(host) - set(record.env)),
        "initialize": {key: value for key, value in initialize.items() if value is not None},
        "warned": record.warned,
    }
    whole: Line = json.loads(json.dumps(found).replace(str(place), "<place>"))
    return {key: value for key, value in whole.items() if value}


def _pairs(argv: list[str]) -> Iterator[tuple[str, str | None]]:
    """Yield flags and their values, in one token or in two."""
    tokens = [*argv]
    while tokens:
        flag, equals, value = tokens.pop(0).partition("=")
        if equals:
            yield flag, value
        elif tokens and not tokens[0].startswith("--"):
            yield flag, tokens.pop(0)
        else:
            yield flag, None


def _add(flags: Line, initialize: Line, flag: str, value: str | None) -> None:
    if flag in OWN_FLAGS or (flag == "--session-id" and NEW_SESSION.fullmatch(value or "")):
        return
    if flag == "--setting-sources" and value == ALL_SOURCES:
        return
    if flag == "--system-prompt":
        initialize["systemPrompt"] = [value]
    elif flag == "--append-system-prompt":
        initialize.update({"appendSystemPrompt": value} if value else {})
    elif flag == "--json-schema":
        initialize["jsonSchema"] = json.loads(value or "")
    elif flag in LISTS:
        if rules := sorted(filter(None, (value or "").replace(" ", ",").split(","))):
            flags[flag] = rules
    elif flag in AS_JSON and (value or "").startswith("{"):
        _add_json(flags, initialize, flag, json.loads(value or ""))
    elif flag == "--add-dir":
        flags[flag] = [*flags.get(flag, []), value]
    else:
        is_long = value is not None and len(value) > LONGEST
        flags[flag] = f"{len(value or '')} characters" if is_long else value


def _add_json(flags: Line, initialize: Line, flag: str, value: Line) -> None:
    servers: Line = value.get("mcpServers", {})
    own = [key for key, config in servers.items() if config.get("type") == "sdk"]
    if own:
        initialize["sdkMcpServers"] = own
        value = {"mcpServers": {key: servers[key] for key in servers if key not in own}}
    if value != {"mcpServers": {}}:
        flags[flag] = value


def _hooks(given: Line) -> Line:
    """Return the matcher and the timeout of each callback, by event."""
    return {
        event: [
            {"matcher": matcher.get("matcher"), "timeout": matcher.get("timeout")}
            for matcher in matchers
            for _ in matcher["hookCallbackIds"]
        ]
        for event, matchers in given.items()
        if any(matcher["hookCallbackIds"] for matcher in matchers)
    }
