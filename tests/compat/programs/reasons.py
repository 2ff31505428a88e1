"""Why a program goes otherwise on ours: each difference is one of those that are on purpose.

`kept/differences.json` has the differences themselves, line by line.
"""

from __future__ import annotations

from collections.abc import Mapping

CAUSE = (
    "exceptions name the cause: the type is the official one, or a class below it, and its text"
    " has what the CLI wrote and what to do"
)
REFUSED = (
    "exceptions name the cause: a control request that the CLI refuses is a `ClaudeSDKError`, where"
    " the official package raises a bare `Exception`; a value that it cannot take is a `ValueError`"
)
GUARDS = (
    "failing guards deny: the model gets which callback has failed, and not the text of its error"
)
RESTARTED = "a killed CLI is revived"

REASONS: Mapping[str, str] = {
    "client_rewinding_files": REFUSED,
    "client_rewinding_without_checkpoints": REFUSED,
    "client_setting_a_wrong_permission_mode": REFUSED,
    "client_whose_cli_is_killed_between_turns": RESTARTED,
    "client_whose_cli_is_killed_in_a_turn": RESTARTED,
    "client_with_three_prompts_at_once": (
        "`receive_response()` always ends: a prompt that shared a turn yields that turn's"
        " `ResultMessage` again"
    ),
    "hook_that_defers": (
        "failing guards deny: an older CLI runs a deferred tool on resume, before it knows the"
        " hooks, so ours denies it there"
    ),
    "hook_that_raises": GUARDS,
    "hook_that_takes_too_long": GUARDS,
    "hooks_of_compaction_and_start": "SessionStart and SessionEnd fire",
    "one_shot_with_a_result_of_1_5_mb": "messages of 256 MB",
    "permission_callback_that_raises": GUARDS,
    "permission_callback_with_a_plain_prompt": CAUSE,
    "permission_callback_with_a_wrong_answer": GUARDS,
    "prompts_sent_verbatim": (
        "exceptions name the cause: an older CLI would run the text as a command, although"
        " `verbatim_prompts` is set, so ours refuses it there"
    ),
    "servers_switched_at_run_time": REFUSED,
    "start_in_a_folder_that_is_not_there": CAUSE,
    "start_in_bypass_mode_as_root": CAUSE,
    "start_of_a_file_that_is_no_program": CAUSE,
    "start_with_an_unknown_flag": CAUSE,
    "start_with_settings_that_are_not_there": CAUSE,
    "start_with_the_id_of_another_session": CAUSE,
    "start_without_a_cli": CAUSE,
}
"""By program; the words are those of the lists of what is kept and what is better on purpose."""
