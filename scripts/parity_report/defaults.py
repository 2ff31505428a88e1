"""Kept by hand: what happens if nothing is set, where that differs from the official SDKs.

A test compares the values with `Options()` and with the catalogue, and looks for the named tests.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULTS", "NO_OPTION", "Default"]

NO_OPTION = "no option; what the CLI does"


@dataclass(frozen=True, slots=True)
class Default:
    """One default of ours that differs from that of an official SDK."""

    what: str
    official: str
    """The default of the Python SDK, and of the TypeScript SDK unless `typescript` has another."""
    ours: str
    why: str
    test: str
    """A test that shows ours, below `tests/`."""
    typescript: str = ""
    option: str = ""
    """The option of ours, if the default is that of an option."""
    value: object = None
    """Its default."""
    declared: str = ""
    """The default that the catalogue has for the official option; empty if it has none."""


DEFAULTS: tuple[Default, ...] = (
    # What the CLI reads and gets
    Default(
        "settings files, `CLAUDE.md`, skills of user and project (`setting_sources`)",
        "all sources",
        "none; with `skills=`: user and project",
        "a program does the same on every machine; files that nobody named change nothing",
        "live/test_isolation.py::test_by_default_the_agent_sees_none_of_it",
        option="setting_sources",
        value=None,
        declared="unset: all sources",
    ),
    Default(
        "environment of the CLI (`env`, `inherit_env`)",
        "all variables of the process, and `env` over them",
        "a fixed list of names, and `env` over them",
        "the agent can print its variables; secrets of the program must not be among them",
        "live/test_isolation.py::test_the_environment_is_the_list_and_nothing_else",
        option="inherit_env",
        typescript="all variables of the process, or `env` in place of them",
    ),
    Default(
        "MCP servers of configuration files (`strict_mcp_config`)",
        "connected (`false`)",
        "not connected (`True`)",
        "a server of a checked-out project is a program that runs with your rights",
        "live/test_isolation.py::test_by_default_the_agent_sees_none_of_it",
        option="strict_mcp_config",
        value=True,
        declared="false",
    ),
    Default(
        "`/command` and `@path` in a prompt (`verbatim_prompts`)",
        "run and read (`false`)",
        "passed on as text (`True`)",
        "text of somebody else in a prompt must neither run commands nor read files",
        "live/test_options.py::test_prompts_are_taken_word_by_word_unless_they_should_not_be",
        option="verbatim_prompts",
        value=True,
        declared="false",
    ),
    Default(
        "no `system_prompt`",
        "an empty prompt",
        'the CLI\'s own prompt; `system_prompt=""` is an empty one',
        "the CLI's prompt says how its tools are used; to remove it should be a decision",
        "live/test_options.py::test_every_form_of_the_system_prompt_reaches_the_model",
        option="system_prompt",
        declared="unset means EMPTY custom prompt in both SDKs (not the Claude Code prompt)",
    ),
    Default(
        "memory in the configuration directory (`memory`)",
        NO_OPTION,
        "not read; its files and the transcripts are closed to tools",
        "the CLI puts it in the prompt and changes it without a permission request",
        "live/test_memory_isolation.py"
        "::test_the_memory_is_in_the_prompt_only_if_the_option_opens_it",
        option="memory",
        value=False,
    ),
    Default(
        "commands in the text of skills and slash commands (`skill_commands`)",
        NO_OPTION,
        "not run",
        "the CLI runs them without a permission request and without a hook",
        "live/test_policy_handover.py::test_a_command_in_a_skill_runs_only_if_the_option_opens_it",
        option="skill_commands",
        value=False,
    ),
    # Who decides
    Default(
        "a permission request, and no callback (`can_use_tool`)",
        "no requests: the CLI decides alone",
        "requested, and denied with a text that names the options",
        "the model and the log say why, and what the author of the program can do",
        "live/test_asking.py::test_without_an_approver_the_model_reads_how_to_register_one",
        option="can_use_tool",
        declared="unset",
    ),
    Default(
        "the tool `AskUserQuestion`",
        "no rule about it",
        "removed, unless a callback or an inbox can answer",
        "a question that nobody reads costs a round trip and never has an answer",
        "live/test_asks.py::test_with_nobody_to_answer_the_model_has_no_tool_to_ask_with",
        option="on_question",
    ),
    Default(
        "a hook that raises",
        "the action goes on (`onFailure: continue`)",
        "the action is stopped, for the events whose action can be stopped",
        "a guard with a bug must not let everything through",
        "live/test_asking.py::test_hooks_see_deny_change_and_fail_closed",
    ),
    Default(
        '`disallowed_tools=["Bash"]`',
        "removes `Bash`",
        "removes every built-in tool that runs commands",
        "otherwise `Monitor` runs what `Bash` may not",
        "live/test_policy_handover.py::test_without_bash_no_tool_that_runs_commands_is_offered",
    ),
    Default(
        "an enabled `sandbox` that is not available",
        "no default of its own: the CLI runs commands without it",
        "the start fails",
        "without it the CLI would run commands unprotected",
        "live/test_options.py::test_a_sandbox_that_cannot_be_had_stops_the_start",
        typescript="the start fails",
    ),
    Default(
        "an elicitation, and no callback (`on_elicitation`)",
        "answered with an error",
        "declined",
        "the MCP server can go on without the input",
        "_session/requests/test_permissions.py"
        "::test_an_elicitation_of_an_in_process_server_is_declined_without_an_answer",
        option="on_elicitation",
        declared=(
            "unset: TS answers action=decline; Python has no handler and answers with an error"
        ),
        typescript="declined",
    ),
    # The process
    Default(
        "a CLI that is too old (`allow_old_cli`)",
        "a warning",
        "`CliTooOld` at the start",
        "with older CLIs a turn can settle wrongly, as in `BELOW_MINIMUM` of `_launch/plan.py`",
        "_session/test_cli_version.py"
        "::test_an_old_cli_can_be_tried_and_what_does_not_hold_is_logged",
        option="allow_old_cli",
        value=False,
        typescript="—",
    ),
    Default(
        "which CLI runs (`cli_path`)",
        "the one in the package",
        "the one on this machine, found in the usual places",
        "steersman has no CLI in its package",
        "transports/test_locate.py::test_the_usual_places_are_searched_after_the_path",
        option="cli_path",
        declared="bundled binary",
    ),
    Default(
        "the longest line (`max_buffer_size`)",
        "1 MiB of characters; a longer one raises",
        "256 MiB; a longer one is dropped and recorded",
        "one large tool result must not end the session, and no line may use up the memory",
        "_session/test_requests.py::test_lines_that_are_noise_or_too_long_cost_themselves_only",
        option="max_buffer_size",
        value=256 * 1024 * 1024,
        declared="1048576",
        typescript="no such option",
    ),
    Default(
        "time for the answer to a control request (`request_timeout`)",
        "60 seconds",
        "60 seconds",
        "every wait ends",
        "_session/test_requests.py"
        "::test_a_request_without_an_answer_runs_out_of_time_and_is_taken_back",
        option="request_timeout",
        value=60.0,
        typescript="no limit",
    ),
    Default(
        "a CLI that is lost (`revive`)",
        "an error",
        "restarted, and the conversation is resumed",
        "a crash of the CLI must not lose the conversation or the prompt",
        "live/test_revival.py::test_killed_at_any_point_of_a_turn_each_prompt_is_answered_once",
        option="revive",
        value=True,
    ),
)
"""In the order of the page."""
