"""What the CLI tells beside the conversation, and what we do with it."""

from __future__ import annotations

from collections.abc import Mapping

from steersman._wire.draft import Draft, Row, greeting, ours, switch, value

__all__ = ["TELLING"]


def _add_debug(draft: Draft, debug: bool | str) -> None:  # noqa: FBT001 - the option's value
    # A file switches it on by itself.
    if debug and draft.options.debug_file is None:
        draft.argv.append("--debug" if debug is True else f"--debug={debug}")


TELLING: Mapping[str, Row] = {
    "include_partial_messages": ours("`--include-partial-messages` is always on; ours to show"),
    "include_hook_events": switch("--include-hook-events"),
    "forward_subagent_text": greeting("forward_subagent_text"),
    "agent_progress_summaries": greeting("agent_progress_summaries"),
    "prompt_suggestions": greeting("prompt_suggestions"),
    "per_task_stop_affordance": greeting("per_task_stop_affordance"),
    "verbatim_prompts": ours("`client_composed` in each prompt"),
    "debug": Row("`--debug`", _add_debug),
    "debug_file": value("--debug-file"),
    "stderr": ours("ours"),
    "startup": ours("ours"),
    "request_timeout": ours("ours"),
    "close_grace": ours("ours"),
    "watchdog": ours("ours"),
    "limits": ours("ours"),
    "revive": ours("`--resume`, `--await-initialize`, CLAUDE_CODE_RESUME_INTERRUPTED_TURN"),
    "journal": ours("ours"),
    "journal_memory": ours("ours"),
    "flight_recorder": ours("ours"),
    "max_buffer_size": ours("ours"),
}
