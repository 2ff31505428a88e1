"""`ClaudeAgentOptions` → the options of a session.

What the official SDK takes is not refused. A value that steersman runs in another form, or without,
gets a `TranslationWarning`; a `ValueError` is raised for what the official SDK or the CLI refuses.
Where the official SDK has another default than steersman, the official one is used.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from steersman._launch.environment import MARKS, PROTOCOL
from steersman.compat import _option_values as values
from steersman.compat._callbacks import (
    CalledStore,
    StderrLines,
    native_approver,
    native_hooks,
    warn_of_shadows,
)
from steersman.compat._option_values import LenientOptions
from steersman.compat._runtime import Call, Notify, call_here, notify_here
from steersman.compat._warnings import TranslationWarning, warn

if TYPE_CHECKING:
    from steersman.compat._shapes.options import ClaudeAgentOptions
    from steersman.options.fields import Options

__all__ = ["Translated", "TranslationWarning", "translate"]

logger = logging.getLogger("steersman.compat")

LONGEST_LINE = 256 * 1024 * 1024
WAIT = 10.0
"""Seconds for the session before this one to close, if both have the same conversation."""

STATES = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
TRUE = frozenset({"1", "true", "yes", "on"})
"""How the CLI reads a variable that is on or off."""

FIXED: Mapping[str, object] = {
    "allow_old_cli": True,
    "inherit_env": True,
    "memory": True,
    "skill_commands": True,
    "wait": WAIT,
}
"""Where steersman has a stricter default than the official SDK."""

FLAGS = (
    "continue_conversation",
    "enable_file_checkpointing",
    "fork_session",
    "forward_subagent_text",
    "include_hook_events",
    "include_partial_messages",
    "strict_mcp_config",
    "verbatim_prompts",
)
SAME = ("client_app", "effort", "max_budget_usd", "resume_drops_turn", "task_budget")
"""Options that are passed as given, `""` and 0 too."""

UNLESS_EMPTY = (
    "cli_path",
    "cwd",
    "fallback_model",
    "max_turns",
    "model",
    "permission_mode",
    "resume",
    "resume_session_at",
    "session_id",
    "user",
)
"""Options whose empty value is none: `""` and 0."""


@dataclass(frozen=True, slots=True)
class Translated:
    """The options of a session, and what the client has to do besides."""

    options: Options
    finish_stderr: Callable[[], None]
    """Passes on the last line of stderr, if it has no newline. To be called after the session."""
    replays_prompts: bool = False
    """Whether `extra_args` asks for `--replay-user-messages`: prompts are then messages too."""
    reports_states: bool = False
    """Whether the environment asks for the CLI's states: they are then messages too."""


def translate(
    options: ClaudeAgentOptions, *, call: Call = call_here, notify: Notify = notify_here
) -> Translated:
    """Return the options of a session that does what `options` ask for.

    `call` calls callbacks and stores of the program, and `notify` its callback for stderr.
    """
    values.check(options)
    words: dict[str, Any] = {
        **FIXED,
        **{name: bool(getattr(options, name)) for name in FLAGS},
        **{name: getattr(options, name) for name in SAME},
        **{name: getattr(options, name) or None for name in UNLESS_EMPTY},
        "add_dirs": tuple(map(str, options.add_dirs or ())),
        "agents": values.agents(options.agents),
        "allowed_tools": values.rules("allowed_tools", options.allowed_tools),
        "betas": tuple(options.betas or ()),
        "disallowed_tools": values.rules("disallowed_tools", options.disallowed_tools),
        "env": variables(options),
        "hooks": native_hooks(cast("Any", options.hooks), call),
        "load_timeout": max(options.load_timeout_ms / 1000, 0.001),
        "max_buffer_size": max(options.max_buffer_size or 0, LONGEST_LINE),
        "mcp_servers": values.servers(options.mcp_servers, call),
        "output_format": values.output_format(options.output_format),
        "plugins": values.plugins(options.plugins),
        "session_store_flush": options.session_store_flush,
        "setting_sources": values.sources(options.setting_sources, options.skills),
        "settings": values.settings(options.settings, options.sandbox),
        "skills": values.skills(options.skills),
        "system_prompt": values.system_prompt(options.system_prompt),
        "tools": values.tools(options.tools),
        **values.thinking(options.thinking, options.max_thinking_tokens),
    }
    replays_prompts = apply_extra_args(words, options.extra_args or {})
    values.settle_conversation(words)
    values.settle_models(words)
    values.settle_denials(words)
    lines = StderrLines(options.stderr, notify)
    words["stderr"] = None if options.stderr is None else lines.feed
    _add_store(words, options, call)
    _add_approver(words, options, call)
    # The session sets this variable in any case; here counts whether the program wants it.
    asked = {**os.environ, **(options.env or {})}.get(STATES, "").lower() in TRUE
    return Translated(LenientOptions(**words), lines.finish, replays_prompts, asked)


def _add_store(words: dict[str, Any], options: ClaudeAgentOptions, call: Call) -> None:
    store = options.session_store
    if store is not None:
        words["session_store"] = store if call is call_here else CalledStore(store, call)


def _add_approver(words: dict[str, Any], options: ClaudeAgentOptions, call: Call) -> None:
    """Add who decides about tool calls: the callback, a tool, or else the CLI, which denies."""
    tool = words.get("permission_prompt_tool_name") or options.permission_prompt_tool_name
    if options.can_use_tool is not None:
        words["permission_prompt_tool_name"] = None
        words["can_use_tool"] = native_approver(options.can_use_tool, call)
        approved = ("Skill",) if words["skills"] == "all" else ()
        warn_of_shadows(words["permission_mode"], (*words["allowed_tools"], *approved))
    else:
        # Without a name the session passes no flag.
        words["permission_prompt_tool_name"] = tool or ""


# `extra_args`: flags that have an option become that option; others are passed as given.
# The official SDK passes these flags after its own, so they count where both are given.


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

PASSED_ANYWAY = frozenset({"print", "verbose", "await-initialize", "session-mirror"})
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
        elif name not in PASSED_ANYWAY and name != REPLAY:
            passed[name] = None if value is None else str(value)
    words["extra_args"] = passed
    return REPLAY in extra


# Environment variables, as the official SDK passes them: all that this process has, and `env`.

REPLACED = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"})
"""Variables of an outer Claude Code session that the official SDK does not pass on either."""

BY_OPTION = {
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "enable_file_checkpointing",
    "CLAUDE_AGENT_SDK_CLIENT_APP": "client_app",
}
"""Variables that an option sets, whatever `env` has."""


def variables(options: ClaudeAgentOptions) -> dict[str, str]:
    """Return the variables to set, beside those that the CLI inherits."""
    marks = {name: os.environ[name] for name in (MARKS - REPLACED) & os.environ.keys()}
    found = {**marks, **_trace(), **(options.env or {})}
    for name, value in found.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"env[{name!r}]: pass a string, not {type(value).__name__}")
    for name in PROTOCOL.keys() & found.keys():
        if found[name] != PROTOCOL[name]:
            warn(f"env[{name!r}] has no effect: steersman needs it as {PROTOCOL[name]!r}")
            del found[name]
    for name, option in BY_OPTION.items():
        if getattr(options, option) not in (None, False):
            found.pop(name, None)
    if options.cwd:
        found["PWD"] = str(options.cwd)
    return found


def _trace() -> dict[str, str]:
    """Return the variables that make the CLI's spans children of the current OpenTelemetry span.

    Without OpenTelemetry, or without a span, those of this process are inherited.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    carrier: dict[str, str] = {}
    try:
        from opentelemetry import propagate  # noqa: PLC0415 - loaded already, if at all

        propagate.inject(carrier)
    except Exception:  # propagators of the program, which must not prevent the start
        logger.exception("the current span cannot be passed to the CLI")
    if "traceparent" not in carrier:
        return {}
    # The state that this process inherited belongs to another span.
    return {"TRACEPARENT": carrier["traceparent"], "TRACESTATE": carrier.get("tracestate", "")}
