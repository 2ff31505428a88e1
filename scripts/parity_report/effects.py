"""Kept by hand: tests that show that something is sent, and not what it does.

A test may read its own request, its command line or a refusal. Then it is no evidence for an
effect in the stock CLI. Such a row needs another test, or the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NOTES", "ONLY_SENT", "SENT", "SHOWN_BY"]

OPTIONS = "tests/live/test_options.py::"

ONLY_SENT: Mapping[str, Mapping[str, frozenset[str]]] = {
    "options": {
        f"{OPTIONS}test_what_only_the_greeting_carries_stands_in_it": frozenset(
            {
                "agentProgressSummaries",
                "forward_subagent_text",
                "perTaskStopAffordance",
                "promptSuggestions",
                "supportedDialogKinds",
                "system_prompt",
            }
        ),
        f"{OPTIONS}test_flags_and_variables_reach_the_process": frozenset(
            {"extra_args", "fallback_model", "max_turns"}
        ),
        "tests/live/test_sizes.py::test_long_lists_of_rules_reach_the_cli_whole": frozenset(
            {"add_dirs"}
        ),
        "tests/live/test_memory_isolation.py"
        "::test_memories_and_transcripts_are_neither_read_nor_written": frozenset(
            {"allowDangerouslySkipPermissions"}
        ),
    },
    "control_requests": {
        "tests/live/test_verbs.py::test_orders_about_the_conversation_are_obeyed": frozenset(
            {"set_color"}
        ),
    },
}
"""By section: tests, and the keys of rows for which they show no effect."""

SENT: Mapping[str, Mapping[str, str]] = {
    "options": {
        "agentProgressSummaries": (
            "the CLI asks the model for a summary only when a subagent has run for about 30"
            " seconds, which is too long for the tests"
        ),
        "supportedDialogKinds": "the CLI shows dialogs only with a login",
    },
    "control_requests": {
        "set_color": "the CLI refuses it over stdio, and the call raises `RequestRefused`",
    },
}
"""By section and key: why no test shows the effect. The test of the row shows what is sent."""

SHOWN_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "options": {
        "max_turns": ("test:tests/live/test_one_shot.py::test_run_gives_a_result_or_says_why_not",),
        "allowDangerouslySkipPermissions": (
            f"test:{OPTIONS}test_a_session_can_be_let_loose_later_if_that_was_allowed",
        ),
        "system_prompt": (f"test:{OPTIONS}test_every_form_of_the_system_prompt_reaches_the_model",),
        "tools": (f"test:{OPTIONS}test_flags_and_variables_reach_the_process",),
        "verbatim_prompts": (
            f"test:{OPTIONS}test_prompts_are_taken_word_by_word_unless_they_should_not_be",
        ),
    },
    "messages": {
        "result/error_during_execution": (
            f"test:{OPTIONS}test_a_turn_ends_when_it_has_cost_enough",
        ),
    },
}
"""By section and key: the marks that count, in place of those that are found."""

NOTES: Mapping[str, Mapping[str, str]] = {
    "messages": {
        "result/success": "one class for both results",
        "result/error_during_execution": (
            "one class for both results; `is_error` and `subtype` tell them apart, and the fields"
            " of the other kind have their defaults"
        ),
    },
    "env": {
        "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": (
            "an option, not a variable. The official SDK only warns about a CLI that is too old;"
            " here the start raises `CliTooOld` unless this is set"
        ),
    },
    "ts_exports": {
        "BUILTIN_TOOL_NAMES": "the names are the keys; there is no list of its own",
        **dict.fromkeys(
            (
                "ApiKeySource",
                "ExitReason",
                "FastModeDisabledReason",
                "FastModeState",
                "SDKAssistantMessageError",
                "SDKStatus",
                "TerminalReason",
            ),
            "a `str`; its values have no type here",
        ),
    },
}
"""By section and key: words beside the name of what is ours."""
