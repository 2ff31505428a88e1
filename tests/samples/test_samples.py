from __future__ import annotations

import re

from tests.samples import TRACES, alone, dialogue, frames, kind_of, traces

KINDS = {
    "assistant",
    "command_lifecycle",
    "control_cancel_request",
    "control_request/can_use_tool",
    "control_request/elicitation",
    "control_request/hook_callback",
    "control_request/mcp_message",
    "control_response/error",
    "control_response/success",
    "conversation_reset",
    "result/error_during_execution",
    "result/error_max_budget_usd",
    "result/error_max_turns",
    "result/success",
    "stream_event/content_block_delta",
    "stream_event/content_block_start",
    "stream_event/content_block_stop",
    "stream_event/message_delta",
    "stream_event/message_start",
    "stream_event/message_stop",
    "system/api_retry",
    "system/background_tasks_changed",
    "system/compact_boundary",
    "system/control_request_progress",
    "system/hook_response",
    "system/hook_started",
    "system/informational",
    "system/init",
    "system/permission_denied",
    "system/session_state_changed",
    "system/session_title_changed",
    "system/status",
    "system/task_notification",
    "system/task_progress",
    "system/task_started",
    "system/task_updated",
    "system/thinking_tokens",
    "tool_progress",
    "transcript_mirror",
    "user",
}


def test_the_samples_hold_every_kind_of_frame_that_the_cli_was_seen_to_send() -> None:
    seen = {kind_of(frame) for trace in traces() for frame in frames(trace)}

    assert seen == KINDS


def test_every_sample_is_a_dialogue_that_begins_with_a_start() -> None:
    begins = {trace: dialogue(trace)[0] for trace in traces()}

    assert begins == {trace: ("proc", {"event": "spawn"}) for trace in traces()}


def test_no_frame_is_declared_that_was_recorded() -> None:
    recorded = {kind_of(frame) for frame in alone("recorded", "messages")}
    declared = {kind_of(frame) for frame in alone("declared", "messages")}

    assert recorded & KINDS == set()
    assert declared & (KINDS | recorded) == set()


def test_the_samples_know_no_machine_but_the_workspace() -> None:
    paths = [*TRACES.glob("*.jsonl"), *(TRACES.parent / "recorded").glob("*.jsonl")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)

    strange = re.findall(r"(?<![\w/])/(?:tmp|root|home|Users|work|var|opt)/[\w./-]*", text)

    assert strange == []


def test_the_samples_stay_small_enough_to_read_in_a_diff() -> None:
    size = sum(path.stat().st_size for path in TRACES.glob("*.jsonl"))

    assert size < 1_200_000
