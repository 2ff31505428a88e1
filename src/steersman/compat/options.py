"""`ClaudeAgentOptions` → the options of a session.

What the official SDK takes is not refused. A value that steersman runs in another form, or without,
gets a `TranslationWarning`; a `ValueError` is raised for what the official SDK or the CLI refuses.
Where the official SDK has another default than steersman, the official one is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from steersman.compat import _option_values as values
from steersman.compat._calling import Call, Notify, call_here, notify_here
from steersman.compat._environment import variables
from steersman.compat._extra_args import apply_extra_args
from steersman.compat._hooks import native_hooks
from steersman.compat._lenient import LenientOptions
from steersman.compat._permissions import native_approver, warn_of_shadows
from steersman.compat._stderr import StderrLines
from steersman.compat._stores import CalledStore
from steersman.compat._warnings import TranslationWarning

if TYPE_CHECKING:
    from steersman.compat._shapes.options import ClaudeAgentOptions
    from steersman.options.fields import Options

__all__ = ["Translated", "TranslationWarning", "translate"]

LONGEST_LINE = 256 * 1024 * 1024
WAIT = 10.0
"""Seconds for the session before this one to close, if both have the same conversation."""

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
    return Translated(LenientOptions(**words), lines.finish, replays_prompts)


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
