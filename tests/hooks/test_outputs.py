"""The fields of an event's own output are sent under the CLI's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman import _json, hooks
from steersman.hooks import (
    CwdChanged,
    CwdChangedOutput,
    ElicitationResult,
    ElicitationResultOutput,
    FileChanged,
    FileChangedOutput,
    HookEvent,
    MessageDisplay,
    MessageDisplayOutput,
    ModelSwitchVerdict,
    Notification,
    NotificationOutput,
    Output,
    PermissionDenied,
    PermissionDeniedOutput,
    PermissionRequest,
    PermissionRequestOutput,
    PermissionVerdict,
    PostModelSwitch,
    PostModelSwitchOutput,
    PostToolBatch,
    PostToolBatchOutput,
    PostToolUse,
    PostToolUseFailure,
    PostToolUseFailureOutput,
    PostToolUseOutput,
    PreModelSwitch,
    PreToolUse,
    Reply,
    SessionStart,
    SessionStartOutput,
    Setup,
    SetupOutput,
    Stop,
    StopOutput,
    SubagentStart,
    SubagentStartOutput,
    SubagentStop,
    SubagentStopOutput,
    ToolVerdict,
    UserPromptExpansion,
    UserPromptExpansionOutput,
    UserPromptSubmit,
    UserPromptSubmitOutput,
    WorktreeCreate,
    WorktreeCreateOutput,
)
from steersman.hooks.reply_checks import encode_reply, parse_reply

CATALOGUE = Path(__file__).parents[1] / "samples" / "parity.json"
CLASSES = [each for each in vars(hooks.replies).values() if isinstance(each, type)]
OUTPUTS = [each for each in CLASSES if issubclass(each, Output) and each is not Output]

VERDICT = PermissionVerdict(
    behavior="allow", updated_input={"command": "ls"}, updated_permissions=[{"type": "setMode"}]
)
MORE = {"additionalContext": "more"}

WRITTEN: list[tuple[type[HookEvent], Output, dict[str, Any]]] = [
    (
        PreToolUse,
        ToolVerdict(
            permission_decision="allow",
            permission_decision_reason="fine",
            updated_input={"command": "ls"},
            additional_context="more",
        ),
        {
            "permissionDecision": "allow",
            "permissionDecisionReason": "fine",
            "updatedInput": {"command": "ls"},
            **MORE,
        },
    ),
    (
        PostToolUse,
        PostToolUseOutput(
            additional_context="more",
            classifier_context="for the classifier",
            updated_tool_output={"stdout": "x"},
            updated_mcp_tool_output=["y"],
        ),
        {
            **MORE,
            "classifierContext": "for the classifier",
            "updatedToolOutput": {"stdout": "x"},
            "updatedMCPToolOutput": ["y"],
        },
    ),
    (PostToolUseFailure, PostToolUseFailureOutput(additional_context="more"), MORE),
    (PostToolBatch, PostToolBatchOutput(additional_context="more"), MORE),
    (
        PermissionRequest,
        PermissionRequestOutput(decision=VERDICT),
        {
            "decision": {
                "behavior": "allow",
                "updatedInput": {"command": "ls"},
                "updatedPermissions": [{"type": "setMode"}],
            }
        },
    ),
    (PermissionDenied, PermissionDeniedOutput(retry=True), {"retry": True}),
    (
        UserPromptSubmit,
        UserPromptSubmitOutput(
            additional_context="more", session_title="Sums", suppress_original_prompt=True
        ),
        {**MORE, "sessionTitle": "Sums", "suppressOriginalPrompt": True},
    ),
    (
        UserPromptExpansion,
        UserPromptExpansionOutput(additional_context="more", suppress_original_prompt=False),
        {**MORE, "suppressOriginalPrompt": False},
    ),
    (Notification, NotificationOutput(additional_context="more"), MORE),
    (MessageDisplay, MessageDisplayOutput(display_content="shown"), {"displayContent": "shown"}),
    (
        ElicitationResult,
        ElicitationResultOutput(action="accept", content={"colour": "red"}),
        {"action": "accept", "content": {"colour": "red"}},
    ),
    (
        SessionStart,
        SessionStartOutput(
            additional_context="more",
            initial_user_message="begin",
            session_title="Sums",
            watch_paths=["/x"],
            reload_skills=True,
        ),
        {
            **MORE,
            "initialUserMessage": "begin",
            "sessionTitle": "Sums",
            "watchPaths": ["/x"],
            "reloadSkills": True,
        },
    ),
    (Setup, SetupOutput(additional_context="more"), MORE),
    (Stop, StopOutput(additional_context="more"), MORE),
    (SubagentStart, SubagentStartOutput(additional_context="more"), MORE),
    (SubagentStop, SubagentStopOutput(additional_context="more"), MORE),
    (
        PreModelSwitch,
        ModelSwitchVerdict(permission_decision="deny", permission_decision_reason="no"),
        {"permissionDecision": "deny", "permissionDecisionReason": "no"},
    ),
    (PostModelSwitch, PostModelSwitchOutput(additional_context="more"), MORE),
    (WorktreeCreate, WorktreeCreateOutput(worktree_path="/x"), {"worktreePath": "/x"}),
    (CwdChanged, CwdChangedOutput(watch_paths=["/x"]), {"watchPaths": ["/x"]}),
    (FileChanged, FileChangedOutput(watch_paths=["/x"]), {"watchPaths": ["/x"]}),
]


@pytest.mark.parametrize(
    ("event", "output", "fields"), WRITTEN, ids=[each.__name__ for each, _, _ in WRITTEN]
)
def test_every_field_of_an_output_is_sent_under_the_name_of_its_event(
    event: type[HookEvent], output: Output, fields: dict[str, Any]
) -> None:
    sent = _json.loads(encode_reply(parse_reply(event, Reply(hook_specific_output=output))))

    assert sent == {"hookSpecificOutput": {"hookEventName": event.__name__, **fields}}


def test_every_output_that_is_declared_has_a_class_with_its_fields() -> None:
    declared = {
        each["event"]: {name.rstrip("?") for name in each["output_fields"]}
        for each in json.loads(CATALOGUE.read_text(encoding="utf-8"))["hooks"]
        if each["output_fields"]
    }

    ours = {str(each.__struct_config__.tag): set(each.__struct_encode_fields__) for each in OUTPUTS}

    assert ours == declared
