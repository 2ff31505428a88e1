"""`extra_args`: flags that have an option become that option; others are passed as given.

The official SDK passes these flags after its own, so they count where both are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.compat._warnings import warn


def _list(value: str) -> tuple[str, ...]:
    return tuple(each for each in value.split(",") if each)


TEXTS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "append-system-prompt": ("append_system_prompt", str),
    "effort": ("effort", str),
    "fallback-model": ("fallback_model", str),
    "max-budget-usd": ("max_budget_usd", str),
    "max-turns": ("max_turns", str),
    "model": ("model", str),
    "permission-mode": ("permission_mode", str),
    "permission-prompt-tool": ("permission_prompt_tool_name", str),
    "resume": ("resume", str),
    "resume-session-at": ("resume_session_at", str),
    "session-id": ("session_id", str),
    "setting-sources": ("setting_sources", _list),
    "settings": ("settings", str),
    "system-prompt": ("system_prompt", str),
}
"""Flags with a value, and the option that each becomes."""

SWITCHES: Mapping[str, str] = {
    "continue": "continue_conversation",
    "fork-session": "fork_session",
    "include-hook-events": "include_hook_events",
    "include-partial-messages": "include_partial_messages",
    "strict-mcp-config": "strict_mcp_config",
}
"""Flags without a value, and the option that each switches on."""

OURS = frozenset({"print", "verbose", "await-initialize", "session-mirror"})
"""Flags that a session passes itself if they are needed."""

REFUSED = frozenset({"input-format", "output-format", "managed-settings-in-initialize"})
"""Flags with which the CLI would not speak the protocol."""

REPLAY = "replay-user-messages"


def apply_extra_args(words: dict[str, Any], extra: Mapping[str, Any]) -> bool:
    """Add the flags to the options; return whether prompts are to be replayed as messages."""
    passed: dict[str, str | None] = {}
    for name, value in extra.items():
        if name in TEXTS and value is not None:
            word, convert = TEXTS[name]
            words[word] = convert(str(value))
        elif name in SWITCHES and value is None:
            words[SWITCHES[name]] = True
        elif name in REFUSED:
            if str(value) != "stream-json":
                warn(f"extra_args: --{name} has no effect; steersman sets it")
        elif name not in OURS and name != REPLAY:
            passed[name] = None if value is None else str(value)
    words["extra_args"] = passed
    return REPLAY in extra
