"""One row per option: its check, its stored form, and how it reaches the CLI.

To add an option, add a field to `Options` in `fields.py` and a row here. Only if the option reaches
the CLI in a way that no class below describes, make it `Custom` and add a function to
`_launch/table.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from steersman.options import checks, forms
from steersman.options.checks import optional
from steersman.options.limits import Budget, Limits, Park, Revival, StartupLimits, Watchdog

Normalize: TypeAlias = Callable[[str, object], object]
"""Takes an option's name and the given value, and returns the value to store."""


# These are structs, not dataclasses: making a dataclass takes time at every import of steersman.
class Flag(Struct, frozen=True):
    """A command-line flag without a value, passed if the option equals `when`."""

    name: str
    when: bool = True

    @property
    def carrier(self) -> str:
        """How the option travels, for docs/options.md."""
        return f"`{self.name}`"


class FlagWithValue(Struct, frozen=True):
    """A command-line flag `--name=value`, passed unless the option is `None`."""

    name: str

    @property
    def carrier(self) -> str:
        """How the option travels, for docs/options.md."""
        return f"`{self.name}`"


class InitializeField(Struct, frozen=True):
    """A field of the initialize request, sent unless the option is empty, `False` or `None`."""

    name: str

    @property
    def carrier(self) -> str:
        """How the option travels, for docs/options.md."""
        return f"initialize: `{self.name}`"


class EnvVariable(Struct, frozen=True):
    """An environment variable: a string as given, `true` for `True`; not set for the rest."""

    name: str

    @property
    def carrier(self) -> str:
        """How the option travels, for docs/options.md."""
        return f"variable `{self.name}`"


class HostOnly(Struct, frozen=True):
    """The launch table does nothing with the option: another part of steersman uses it."""

    carrier: str = "not sent: used by steersman itself"
    """Which part uses it, for docs/options.md."""


class Custom(Struct, frozen=True):
    """A function in `_launch/table.py` adds the option to the launch."""

    carrier: str
    """How the option travels, for docs/options.md."""


Travels: TypeAlias = Flag | FlagWithValue | InitializeField | EnvVariable | HostOnly | Custom


class Spec(Struct, frozen=True):
    """All that steersman knows about one option beside its type and its default."""

    check: checks.Check
    """Applied to the stored form of a value that is not the default."""
    travels: Travels
    normalize: Normalize | None = None
    """Applied to a value that is not the default, before the check; `None` stores it as given."""


def _anything(_name: str, _given: object) -> None:
    """Allow every value."""


_FLAG_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENVIRONMENT = HostOnly("the environment of the process")
_PATH = optional(checks.path)
_TEXT = optional(checks.text)
_UUID = optional(checks.uuid)
_WORD = optional(checks.word)

_PLACE: Mapping[str, Spec] = {
    "settings": Spec(
        optional(forms.settings), Custom("`--settings`; everything but a path in a private file")
    ),
    "managed_settings": Spec(
        optional(checks.mapping),
        Custom("`--managed-settings-in-initialize` and initialize: `managed_settings`"),
    ),
    "setting_sources": Spec(
        optional(checks.each(checks.setting_source)),
        Custom("`--setting-sources`"),
        forms.tuple_unless(),
    ),
    # These two are closed by `_launch/isolation.py`, after all other settings are known.
    "memory": Spec(
        checks.flag,
        HostOnly("if off: variable `CLAUDE_CODE_DISABLE_AUTO_MEMORY`, and rules in `--settings`"),
    ),
    "skill_commands": Spec(
        checks.flag, HostOnly("if off: `disableSkillShellExecution` in `--settings`")
    ),
    "cwd": Spec(_PATH, HostOnly("the working directory of the process")),
    "add_dirs": Spec(
        checks.each(checks.path),
        Custom("`--add-dir`; a long list by `--settings`"),
        checks.as_tuple,
    ),
    "project_config_root": Spec(_PATH, FlagWithValue("--project-config-root")),
    "cli_path": Spec(_PATH, HostOnly("the program that is run")),
    "user": Spec(_WORD, HostOnly("the user of the process")),
    "env": Spec(
        checks.mapping_of(_VARIABLE_NAME, "a variable's name", checks.variable_value), _ENVIRONMENT
    ),
    "inherit_env": Spec(forms.inherit_env, _ENVIRONMENT, forms.tuple_unless(bool)),
    "client_app": Spec(optional(checks.header), EnvVariable("CLAUDE_AGENT_SDK_CLIENT_APP")),
    "extra_args": Spec(
        checks.mapping_of(_FLAG_NAME, "a flag's name without dashes", checks.flag_value),
        Custom("flags, as given"),
    ),
}

_MODEL: Mapping[str, Spec] = {
    "model": Spec(_WORD, FlagWithValue("--model")),
    "fallback_model": Spec(
        optional(forms.check_fallback), Custom("`--fallback-model`"), forms.tuple_unless(str)
    ),
    "system_prompt": Spec(
        optional(forms.system_prompt),
        Custom(
            "initialize: `system_prompt`, `append_system_prompt`; a file by `--system-prompt-file`"
        ),
        forms.tuple_if_list,
    ),
    "append_system_prompt": Spec(_TEXT, Custom("initialize: `append_system_prompt`")),
    "exclude_dynamic_sections": Spec(checks.flag, InitializeField("exclude_dynamic_sections")),
    "thinking": Spec(
        optional(forms.check_thinking),
        Custom("`--thinking`, `--max-thinking-tokens`, `--thinking-display`"),
    ),
    "max_thinking_tokens": Spec(
        optional(checks.whole), Custom("`--max-thinking-tokens`; 0 is `--thinking=disabled`")
    ),
    "effort": Spec(optional(checks.effort), FlagWithValue("--effort")),
    "betas": Spec(checks.each(forms.beta_name), Custom("`--betas`"), checks.as_tuple),
    "max_turns": Spec(optional(checks.count), FlagWithValue("--max-turns")),
    "max_budget_usd": Spec(optional(checks.positive), FlagWithValue("--max-budget-usd")),
    "task_budget": Spec(optional(forms.task_budget), Custom("`--task-budget`")),
    "output_format": Spec(optional(forms.output_format), Custom("initialize: `json_schema`")),
}

_TOOLS: Mapping[str, Spec] = {
    # First of all, because naming a skill approves it: this adds to the rules of `allowed_tools`.
    "skills": Spec(
        forms.check_skills,
        Custom("initialize: `skills`, and rules in `--allowedTools`"),
        forms.tuple_unless_all,
    ),
    # Second, because it adds to the three options that follow.
    "policy": Spec(
        optional(forms.policy),
        Custom("`--tools`, `--allowedTools`, `--disallowedTools`; a hook"),
    ),
    "tools": Spec(forms.check_tools, Custom("`--tools`"), forms.tuple_unless(Mapping)),
    "allowed_tools": Spec(
        checks.each(checks.rule),
        Custom("`--allowedTools`; a long list by `--settings`"),
        checks.as_tuple,
    ),
    "disallowed_tools": Spec(
        checks.each(checks.rule),
        Custom("`--disallowedTools`; a long list by `--settings`"),
        checks.as_tuple,
    ),
    "tool_aliases": Spec(
        checks.mapping_of(checks.KEY, "a tool's name", checks.name_of_tool),
        InitializeField("tool_aliases"),
    ),
    "tool_config": Spec(
        optional(forms.tool_config),
        Custom(
            "variables `CLAUDE_CODE_QUESTION_PREVIEW_FORMAT`, `CLAUDE_CODE_QUESTION_EXTENDED`,"
            " `CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS`"
        ),
    ),
    "functions": Spec(
        checks.each(checks.callable_),
        HostOnly("initialize: `sdk_mcp_servers`, and rules in `--allowedTools`"),
        checks.as_tuple,
    ),
    "mcp_servers": Spec(
        forms.check_servers,
        Custom("private file, `--mcp-config`; those in Python by initialize: `sdk_mcp_servers`"),
        forms.read_servers,
    ),
    "require": Spec(
        forms.require, HostOnly("asks `mcp_status` at the start"), forms.tuple_unless(bool)
    ),
    "strict_mcp_config": Spec(checks.flag, Flag("--strict-mcp-config")),
    "permission_mode": Spec(
        optional(checks.permission_mode),
        Custom("`--permission-mode`; for `None` that of `settings`, or else `default`"),
    ),
    "allow_dangerously_skip_permissions": Spec(
        checks.flag, Flag("--allow-dangerously-skip-permissions")
    ),
    # Not by this table: every launch has that flag, and the option only changes its value.
    "permission_prompt_tool_name": Spec(
        optional(checks.name_of_tool), HostOnly("`--permission-prompt-tool`")
    ),
    "permission_prompts": Spec(
        optional(checks.one_of("host", "none")), FlagWithValue("--permission-prompts")
    ),
    "deps": Spec(_anything, HostOnly("`ToolContext.deps`")),
    "can_use_tool": Spec(
        optional(checks.callback("tool_name", "tool_input", "context")),
        HostOnly("answers `can_use_tool`"),
    ),
    "ask_every_call": Spec(checks.flag, HostOnly("a hook of steersman's")),
    "on_question": Spec(
        optional(checks.callback("the questions")),
        HostOnly("answers `can_use_tool` of `AskUserQuestion`"),
    ),
    "inbox": Spec(
        optional(forms.inbox),
        HostOnly("answers `can_use_tool`, `elicitation`, `request_user_dialog`"),
    ),
    "plan_mode_instructions": Spec(_TEXT, InitializeField("plan_mode_instructions")),
    "hooks": Spec(
        forms.hooks, Custom("initialize: `hooks`; answers `hook_callback`"), forms.read_hooks
    ),
    "on_elicitation": Spec(
        optional(checks.callback("the elicitation")), HostOnly("answers `elicitation`")
    ),
    "on_user_dialog": Spec(
        optional(checks.callback("the dialog")), HostOnly("answers `request_user_dialog`")
    ),
    "supported_dialog_kinds": Spec(
        checks.each(checks.word), InitializeField("supported_dialog_kinds"), checks.as_tuple
    ),
    "agents": Spec(
        checks.mapping_of(checks.KEY, forms.KEY_ALLOWED, forms.check_agent),
        Custom("initialize: `agents`"),
    ),
    "agent": Spec(_WORD, FlagWithValue("--agent")),
    "plugins": Spec(
        checks.each(forms.check_plugin),
        Custom("`--plugin-dir`, `--plugin-dir-no-mcp`; a long list by initialize: `plugins`"),
        checks.as_tuple,
    ),
    "plugin_delivery": Spec(
        checks.one_of("argv", "initialize"),
        HostOnly("`--await-initialize` and initialize: `plugins`"),
    ),
    "sandbox": Spec(optional(checks.mapping), Custom("private file, `--settings`")),
}

_CONVERSATION: Mapping[str, Spec] = {
    # Not by this table: every new conversation gets its id from steersman.
    "session_id": Spec(_UUID, HostOnly("`--session-id`")),
    # With either, `plan()` adds `--await-initialize`.
    "resume": Spec(_WORD, FlagWithValue("--resume")),
    "continue_conversation": Spec(checks.flag, Flag("--continue")),
    "fork_session": Spec(checks.flag, Flag("--fork-session")),
    "resume_session_at": Spec(_UUID, FlagWithValue("--resume-session-at")),
    "resume_drops_turn": Spec(_UUID, FlagWithValue("--resume-drops-turn")),
    "persist_session": Spec(checks.flag, Flag("--no-session-persistence", when=False)),
    "wait": Spec(checks.not_negative, HostOnly("locks the conversation")),
    "title": Spec(_WORD, InitializeField("title")),
    "enable_file_checkpointing": Spec(
        checks.flag, EnvVariable("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING")
    ),
    "session_store": Spec(optional(forms.session_store), Custom("`--session-mirror`")),
    "session_store_flush": Spec(checks.one_of("batched", "eager"), HostOnly()),
    "load_timeout": Spec(checks.positive, HostOnly()),
}

_OUTPUT: Mapping[str, Spec] = {
    "include_partial_messages": Spec(
        optional(checks.flag), Custom("`--include-partial-messages`, unless False")
    ),
    "include_hook_events": Spec(checks.flag, Flag("--include-hook-events")),
    "forward_subagent_text": Spec(checks.flag, InitializeField("forward_subagent_text")),
    "agent_progress_summaries": Spec(checks.flag, InitializeField("agent_progress_summaries")),
    "prompt_suggestions": Spec(checks.flag, InitializeField("prompt_suggestions")),
    "per_task_stop_affordance": Spec(checks.flag, InitializeField("per_task_stop_affordance")),
    "verbatim_prompts": Spec(checks.flag, HostOnly("`client_composed` in each prompt")),
    "debug": Spec(forms.debug, Custom("`--debug`")),
    "debug_file": Spec(_PATH, FlagWithValue("--debug-file")),
}

_HOST: Mapping[str, Spec] = {
    "stderr": Spec(optional(checks.callback("a text")), HostOnly()),
    "allow_old_cli": Spec(checks.flag, HostOnly()),
    "allow_unsafe_cli": Spec(checks.flag, HostOnly()),
    "startup": Spec(checks.instance_of(StartupLimits, "a StartupLimits value"), HostOnly()),
    "request_timeout": Spec(checks.positive, HostOnly()),
    "close_grace": Spec(checks.not_negative, HostOnly()),
    "watchdog": Spec(
        optional(checks.instance_of(Watchdog, "a Watchdog value, or None")), HostOnly()
    ),
    "budget": Spec(checks.optional(checks.instance_of(Budget, "a Budget")), HostOnly()),
    "limits": Spec(checks.instance_of(Limits, "a Limits value"), HostOnly()),
    "revive": Spec(
        checks.must_be(
            "True, False or a Revival value", lambda given: isinstance(given, bool | Revival)
        ),
        HostOnly("`--resume`, `--await-initialize`, CLAUDE_CODE_RESUME_INTERRUPTED_TURN"),
    ),
    "park": Spec(checks.instance_of(Park, "a Park value"), HostOnly()),
    "journal": Spec(optional(forms.check_journal), HostOnly()),
    "sinks": Spec(checks.each(forms.sink), HostOnly(), checks.as_tuple),
    "journal_memory": Spec(checks.count, HostOnly()),
    "flight_recorder": Spec(_PATH, HostOnly()),
    "max_buffer_size": Spec(checks.count, HostOnly()),
}

TABLE: Mapping[str, Spec] = {
    **_PLACE,
    **_MODEL,
    **_TOOLS,
    **_CONVERSATION,
    **_OUTPUT,
    **_HOST,
}
"""Every option, in the order in which a launch is put together.

The place comes first, because rules and the sandbox are added to its settings.
"""
