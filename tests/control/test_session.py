from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman import _json
from steersman._struct import read_leniently, set_source
from steersman.control import (
    AccountInfo,
    Answer,
    BackgroundTasks,
    CancelAsyncMessage,
    FileSuggestions,
    GenerateSessionTitle,
    GetBinaryVersion,
    GetContextUsage,
    GetHooksListing,
    GetPlan,
    GetSettings,
    GetUsage,
    Initialize,
    Initialized,
    Interrupt,
    InterruptReceipt,
    ListModels,
    ListPermissionRules,
    McpMessage,
    McpServerInfo,
    McpServers,
    McpServersSet,
    McpServerStatus,
    McpSetServers,
    McpStatus,
    McpToolInfo,
    ModelSet,
    ReadFile,
    ReloadOutputStyles,
    ReloadPlugins,
    Rewound,
    SetModel,
    SetPermissionMode,
    SideQuestion,
    Verb,
    Withdrawn,
)
from tests.samples import Frame, dialogue, frames


def answers_to(trace: str, subtype: str) -> list[Frame]:
    """The payloads of the CLI's successes for one kind of request."""
    ids = {
        frame["request_id"]
        for side, frame in dialogue(trace)
        if side == "sdk>cli" and frame.get("request", {}).get("subtype") == subtype
    }
    return [
        frame["response"]["response"]
        for frame in frames(trace)
        if frame["type"] == "control_response"
        and frame["response"]["request_id"] in ids
        and "response" in frame["response"]
    ]


@pytest.mark.parametrize(
    ("verb", "wire"),
    [
        (Interrupt(), {"subtype": "interrupt"}),
        (Interrupt(cancel_queued=True), {"subtype": "interrupt", "cancel_queued": True}),
        (SetModel(model="opus"), {"subtype": "set_model", "model": "opus"}),
        (SetModel(model=None), {"subtype": "set_model", "model": None}),
        (SetPermissionMode(mode="plan"), {"subtype": "set_permission_mode", "mode": "plan"}),
        (
            CancelAsyncMessage(message_uuid="u"),
            {"subtype": "cancel_async_message", "message_uuid": "u"},
        ),
        (
            McpMessage(server_name="calc", message={"method": "x"}),
            {"subtype": "mcp_message", "server_name": "calc", "message": {"method": "x"}},
        ),
        (Initialize(), {"subtype": "initialize"}),
        (
            Initialize(
                hooks={"Stop": [{"hookCallbackIds": ["hook_0"]}]},
                agents={"a": {"prompt": "x"}},
                sdk_mcp_servers=["calc"],
                json_schema={"type": "object"},
                system_prompt=[""],
                append_system_prompt="more",
            ),
            {
                "subtype": "initialize",
                "hooks": {"Stop": [{"hookCallbackIds": ["hook_0"]}]},
                "agents": {"a": {"prompt": "x"}},
                "sdkMcpServers": ["calc"],
                "jsonSchema": {"type": "object"},
                "systemPrompt": [""],
                "appendSystemPrompt": "more",
            },
        ),
    ],
    ids=lambda value: value.operation if isinstance(value, Verb) else "",
)
def test_a_verb_is_written_as_the_cli_reads_it(verb: Verb[Any], wire: Frame) -> None:
    assert _json.loads(_json.dumps(verb)) == wire
    assert verb.operation == wire["subtype"]


@pytest.mark.parametrize(
    ("trace", "verb", "answers"),
    [
        (
            "queue_interrupt",
            Interrupt,
            [
                InterruptReceipt(still_queued=["22222222-2222-4222-8222-222222222222"]),
                InterruptReceipt(cancelled=["44444444-4444-4444-8444-444444444444"]),
            ],
        ),
        (
            "queue_interrupt",
            CancelAsyncMessage,
            [Withdrawn(cancelled=True), Withdrawn(cancelled=False)],
        ),
    ],
)
def test_an_answer_reads_what_the_cli_was_seen_to_answer(
    trace: str, verb: type[Verb[Any]], answers: list[Answer]
) -> None:
    found = answers_to(trace, str(verb.__struct_config__.tag))

    read = [set_source(read_leniently(verb.ANSWER, each), each) for each in found]

    assert read == answers
    assert [each.raw for each in read] == found


def test_the_recorded_models_are_read() -> None:
    found = answers_to("set_model", "set_model")

    read = [read_leniently(ModelSet, each) for each in found]

    assert [each.model for each in read] == [each["model"] for each in found]
    assert all(each.model for each in read)


def test_the_recorded_handshake_is_read() -> None:
    (found,) = answers_to("handshake_bare", "initialize")

    read = set_source(read_leniently(Initialized, found), found)

    assert read.claude_code_version == "2.1.325"
    assert read.hook_on_failure_supported
    assert [each.name for each in read.commands] == [each["name"] for each in found["commands"]]
    assert [each.raw for each in read.commands] == found["commands"]
    assert [each.description for each in read.agents] == [
        each["description"] for each in found["agents"]
    ]
    assert [each.resolved_model for each in read.models] == [
        each["resolvedModel"] for each in found["models"]
    ]
    assert read.models[0].supported_effort_levels == ["low", "medium", "high", "xhigh", "max"]
    assert read.account == AccountInfo(
        token_source="none", api_key_source="ANTHROPIC_API_KEY", api_provider="firstParty"
    )
    assert read.available_output_styles == found["available_output_styles"]
    assert read.capabilities == found["capabilities"]
    assert read.raw is found


# What the CLI was seen to answer, and what is read of it.
RECORDED: dict[type[Verb[Any]], Callable[[Any], Any]] = {
    GetContextUsage: lambda a: (a.total_tokens, len(a.categories), a.memory_files[0].type),
    McpStatus: lambda a: a.servers,
    GetSettings: lambda a: (a.applied["model"], a.sources),
    ListModels: lambda a: [each.value for each in a.models],
    GetUsage: lambda a: (a.session.total_api_duration_ms, a.rate_limits_available),
    GetBinaryVersion: lambda a: (a.version, a.build_time),
    ListPermissionRules: lambda a: (a.state.rules, a.state.original_cwd),
    GetHooksListing: lambda a: (a.hooks, a.event_catalog[0].name, a.policy.managed_only),
    FileSuggestions: lambda a: (a.suggestions, a.cwd),
    ReadFile: lambda a: (a.contents, a.abs_path),
    ReloadOutputStyles: lambda a: a.available_output_styles[0],
    ReloadPlugins: lambda a: (a.plugins[0].name, a.error_count, a.held),
    BackgroundTasks: lambda a: a.backgrounded,
    McpSetServers: lambda a: a,
    GenerateSessionTitle: lambda a: a.title,
    SideQuestion: lambda a: (a.response, a.synthetic),
    GetPlan: lambda a: a.exists,
}

READ: dict[type[Verb[Any]], Any] = {
    GetContextUsage: (9202, 8, "Project"),
    McpStatus: [],
    GetSettings: ("claude-opus-5-5", []),
    ListModels: ["default", "opus", "fable"],
    GetUsage: (24, False),
    GetBinaryVersion: ("2.1.325", "2026-11-13T18:52:23Z"),
    ListPermissionRules: ([], "/workspace/project"),
    GetHooksListing: ([], "PreToolUse", False),
    FileSuggestions: ([], "/workspace/project"),
    ReadFile: ("file text\n", "/workspace/project/r.txt"),
    ReloadOutputStyles: "default",
    ReloadPlugins: ("cc-plugin-agents-md", 0, False),
    BackgroundTasks: None,
    McpSetServers: McpServersSet(),
    GenerateSessionTitle: None,
    SideQuestion: ("Echo: what?", False),
    GetPlan: False,
}


@pytest.mark.parametrize("verb", RECORDED)
def test_a_recorded_answer_is_read(verb: type[Verb[Any]]) -> None:
    found = answers_to("control_all_queries", str(verb.__struct_config__.tag))[0]

    read = set_source(read_leniently(verb.ANSWER, found), found)

    assert RECORDED[verb](read) == READ[verb]


def test_both_kinds_of_rewind_are_read() -> None:
    files = ["/workspace/project/f.txt"]
    trial = {"canRewind": True, "filesChanged": files, "insertions": 1, "deletions": 1}
    (real,) = answers_to("rewind_client_uuid", "rewind_files")

    read = [read_leniently(Rewound, each) for each in (trial, real)]

    assert read == [
        Rewound(can_rewind=True, files_changed=files, insertions=1, deletions=1),
        Rewound(can_rewind=True),
    ]


def test_the_state_of_a_tool_server_is_read() -> None:
    # As recorded from the CLI, once the server was connected and once it could not be started.
    connected = {
        "name": "ext",
        "status": "connected",
        "serverInfo": {"name": "ext", "version": "0.1"},
        "config": {"type": "stdio", "command": "python3", "args": ["server.py"]},
        "transport": "stdio",
        "scope": "dynamic",
        "source": "dynamic",
        "tools": [{"name": "echo", "annotations": {}}, {"name": "ask", "annotations": {}}],
    }
    failed = {"name": "exits", "status": "failed", "error": "Connection closed"}

    read = read_leniently(McpServers, {"mcpServers": [connected, failed]})

    assert read.servers == [
        McpServerStatus(
            name="ext",
            status="connected",
            server_info=McpServerInfo(name="ext", version="0.1"),
            config={"type": "stdio", "command": "python3", "args": ["server.py"]},
            transport="stdio",
            scope="dynamic",
            source="dynamic",
            tools=[McpToolInfo(name="echo"), McpToolInfo(name="ask")],
        ),
        McpServerStatus(name="exits", status="failed", error="Connection closed"),
    ]
