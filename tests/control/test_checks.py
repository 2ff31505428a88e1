from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from steersman.control import (
    ApplyFlagSettings,
    BackgroundTasks,
    CancelAsyncMessage,
    FileSuggestions,
    GetContextUsage,
    GetUsage,
    Initialize,
    Interrupt,
    McpCall,
    McpReadResource,
    McpReconnect,
    McpSetServers,
    McpToggle,
    ReadFile,
    RegisterRepoRoot,
    ReloadPlugins,
    RenameSession,
    RewindFiles,
    SeedReadState,
    SetMaxThinkingTokens,
    SetMcpPermissionModeOverride,
    SetModel,
    SetPermissionMode,
    SideQuestion,
    StopTask,
    UpdateSettings,
    Verb,
)
from steersman.errors import UsageError

Make = Callable[..., Verb[Any]]

ROUND: dict[str, Any] = {}
ROUND["again"] = ROUND


@pytest.mark.parametrize(
    ("make", "fields", "wrong"),
    [
        (SetModel, {"model": 5}, "model"),
        (SetModel, {"model": ""}, "model"),
        (SetPermissionMode, {"mode": "yolo"}, "mode"),
        (SetMaxThinkingTokens, {"max_thinking_tokens": -1}, "max_thinking_tokens"),
        (SetMaxThinkingTokens, {"max_thinking_tokens": True}, "max_thinking_tokens"),
        (SetMaxThinkingTokens, {"thinking_display": "loud"}, "thinking_display"),
        (GetContextUsage, {"detail": "some"}, "detail"),
        (GetUsage, {"skip_behaviors": 1}, "skip_behaviors"),
        (RenameSession, {"title": ""}, "title"),
        (RenameSession, {"title": "x", "source": "user"}, "source"),
        (RewindFiles, {"user_message_id": None}, "user_message_id"),
        (RewindFiles, {"user_message_id": "u", "dry_run": "yes"}, "dry_run"),
        (ReadFile, {"path": "f", "encoding": "latin-1"}, "encoding"),
        (ReadFile, {"path": "f", "max_bytes": 1.5}, "max_bytes"),
        (SeedReadState, {"path": "f", "mtime": float("nan")}, "mtime"),
        (SeedReadState, {"path": "f", "mtime": float("inf")}, "mtime"),
        (FileSuggestions, {"query": None}, "query"),
        (RegisterRepoRoot, {"directory": ""}, "directory"),
        (UpdateSettings, {"source": "projectSettings", "settings": {}}, "source"),
        (ApplyFlagSettings, {"settings": [1]}, "settings"),
        (ApplyFlagSettings, {"settings": {"key": object()}}, "settings"),
        (ApplyFlagSettings, {"settings": ROUND}, "settings"),
        (McpSetServers, {"servers": {"calc": "python calc.py"}}, "servers"),
        (McpCall, {"tool": "shout"}, "tool"),
        (McpCall, {"tool": "mcp__a__b", "timeout_ms": 10}, "timeout_ms"),
        (McpCall, {"tool": "mcp__a__b", "arguments": {1: {2}, 3: len}}, "arguments"),
        (McpReadResource, {"server_name": "a", "uri": "file:///etc/passwd"}, "uri"),
        (McpReconnect, {"server_name": ""}, "server_name"),
        (McpToggle, {"server_name": "a", "enabled": None}, "enabled"),
        (SetMcpPermissionModeOverride, {"server_name": "a", "mode": "plan"}, "mode"),
        (ReloadPlugins, {"add_plugins": "plugin"}, "add_plugins"),
        (StopTask, {"task_id": 7}, "task_id"),
        (BackgroundTasks, {"tool_use_id": ""}, "tool_use_id"),
        (CancelAsyncMessage, {"message_uuid": ""}, "message_uuid"),
        (Interrupt, {"cancel_queued": None}, "cancel_queued"),
        (SideQuestion, {"question": b"why"}, "question"),
        (Initialize, {"sdk_mcp_server_manifests_origin": "me"}, "sdk_mcp_server_manifests_origin"),
        (Initialize, {"tool_aliases": {"Bash": 1}}, "tool_aliases"),
    ],
)
def test_a_verb_with_a_value_that_the_cli_could_not_take_is_never_made(
    make: Make, fields: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make(**fields)

    assert refused.value.argument == wrong


@pytest.mark.parametrize(
    ("make", "fields", "allowed"),
    [
        (GetContextUsage, {"detail": "some"}, "one of summary, full, or None"),
        (
            SetMaxThinkingTokens,
            {"thinking_display": 1},
            "one of summarized, omitted, highlights, or None",
        ),
        (SetModel, {"model": ""}, "a text that is not empty, or None"),
        (Interrupt, {"cancel_queued": 1}, "True or False"),
        (McpSetServers, {"servers": []}, "a mapping of JSON values"),
        (Initialize, {"skills": "all"}, "a list, or None"),
        (McpCall, {"tool": "shout"}, "a tool's full name, such as mcp__calc__add"),
    ],
)
def test_a_refusal_says_what_is_allowed(make: Make, fields: dict[str, Any], allowed: str) -> None:
    with pytest.raises(UsageError) as refused:
        make(**fields)

    assert refused.value.allowed == allowed


def test_a_refusal_does_not_show_what_may_be_secret() -> None:
    servers = {"calc": {"env": {"TOKEN": "sesame"}}, "bad": 1}

    with pytest.raises(UsageError) as refused:
        McpSetServers(servers=servers)  # type: ignore[arg-type]

    assert "sesame" not in str(refused.value)
    assert refused.value.given == "a dict"


def test_a_verb_cannot_be_made_without_what_it_needs() -> None:
    with pytest.raises(TypeError, match="mode"):
        SetPermissionMode()  # type: ignore[call-arg]


def test_a_verb_that_was_made_can_be_made_again_from_its_wire_form() -> None:
    verb = McpCall(tool="mcp__calc__add", arguments={"a": 1}, timeout_ms=2000)

    again = msgspec.convert(msgspec.to_builtins(verb), McpCall)

    assert again == verb
