"""Kept by hand: a test for each reason that says what happens instead of what is left out."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.parity_report.instead import OUR_FORK

__all__ = ["SHOWN", "shown_by"]

HERE = "tests/house/test_left_out.py::"
PARSING = "tests/messages/test_parsing.py::test_an_unknown_message_keeps_its_words_and_all_the_rest"
MANIFESTS = "tests/live/test_revived_tools.py::test_a_continued_turn_can_call_its_tools_at_once"

SHOWN: Mapping[str, str] = {
    "done differently: `Agent.prewarm`": (
        "tests/test_prewarm.py::test_the_next_sessions_without_overrides_are_those_that_are_ready"
    ),
    "done differently: a line that is not JSON": (
        "tests/_session/test_requests.py"
        "::test_lines_that_are_noise_or_too_long_cost_themselves_only"
    ),
    "done differently: an unknown message": PARSING,
    "kept as data: an `UnknownMessage`": PARSING,
    "done differently: arguments and results of the methods": OUR_FORK,
    "done differently: no list of names": f"{HERE}test_every_declared_event_has_a_class",
    "done differently: no list; `hooks.SessionEnd.reason`": (
        f"{HERE}test_the_reason_of_the_end_of_a_session_is_any_text"
    ),
    "done differently: not looked at; manifests": MANIFESTS,
    "done differently: the CLI requests the list of tools": MANIFESTS,
    "done differently: not passed on": (
        "tests/live/test_isolation.py::test_the_environment_is_the_list_and_nothing_else"
    ),
    "done differently: not set": (
        f"{HERE}test_neither_the_version_of_another_sdk_nor_the_directory_is_a_variable_of_the_cli"
    ),
    "done differently: refused by `Hooks.on`": (
        f"{HERE}test_events_that_the_cli_never_calls_back_for_are_refused"
    ),
    "done differently: stdin stays open": (
        "tests/_session/test_rest.py::test_a_query_over_a_stream_of_prompts_ends_too"
    ),
    "done differently: the CLI reads and applies its settings": (
        "tests/live/test_options.py::test_project_settings_can_lie_elsewhere"
    ),
    "done differently: the option `startup`": (
        f"{HERE}test_how_long_a_start_may_take_is_an_option_and_no_variable"
    ),
    "kept as data: a mapping in the configuration": (
        f"{HERE}test_the_configuration_of_a_server_reaches_the_cli_as_it_is"
    ),
    "kept as data: an `UnknownBlock`": (
        f"{HERE}test_a_block_without_a_class_keeps_all_that_was_sent"
    ),
    "not declared: only the API's SDK has a type": (
        f"{HERE}test_a_block_without_a_class_keeps_all_that_was_sent"
    ),
    "kept as data: any keys": f"{HERE}test_the_input_of_a_tool_of_a_server_stays_a_mapping",
    "kept as data: in the `errors`": f"{HERE}test_errors_in_settings_are_mappings_of_their_answer",
    "kept as data: in the `raw` of a `control.McpServerStatus`": (
        f"{HERE}test_where_a_server_comes_from_is_in_its_raw"
    ),
    "kept as data: in the answer to initialize": (
        f"{HERE}test_capabilities_that_nothing_uses_are_in_the_answer_to_initialize"
    ),
    "kept as data: in the content of a `ToolResultBlock`": (
        f"{HERE}test_what_is_inside_a_tool_result_stays_a_mapping"
    ),
    "kept as data: in the mappings of `hooks.Stop`": (
        f"{HERE}test_what_a_stop_hook_gets_of_tasks_and_schedules_stays_a_mapping"
    ),
    "JavaScript runtime: here a cancelled task": (
        f"{HERE}test_a_cancelled_task_is_a_cancelled_error"
    ),
}
"""By the beginning of the reason."""

NEEDS_A_TEST = ("kept as data: ", "done differently: ")


def shown_by(reason: str) -> str:
    """Return the mark of the test for a reason; empty for one that only says what is not here.

    Raises `KeyError` for a reason that says what happens, and has no test.
    """
    found = next((test for begin, test in SHOWN.items() if reason.startswith(begin)), None)
    if found is None and reason.startswith(NEEDS_A_TEST):
        raise KeyError(f"no test in left_out.SHOWN for: {reason}")
    return f"test:{found}" if found else ""
