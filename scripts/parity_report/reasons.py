"""Kept by hand: replacements under other names, and reasons for what is missing.

Used only if nothing with the official name is found. A test fails if an entry is for something
that is not declared, or gives a reason for something that is here.
"""

from __future__ import annotations

from collections.abc import Mapping

from scripts.parity_report.instead import (
    BY_STORE,
    FOLDER_NAME,
    OUR_FORK,
    SETTINGS,
    TRACES,
    WARM,
    WHILE_IT_RUNS,
    Elsewhere,
)
from scripts.parity_report.ts_names import ELSEWHERE_TS, REASONS_TS
from steersman.hooks.registry import NEVER_CALLED

__all__ = ["ALSO_SHOWN_BY", "ELSEWHERE", "NOT_LIVE", "REASONS", "WHOLE_SECTION"]

INITIALIZED = "steersman.Session.initialized"
LATE_TOOL = (
    "tests/live/test_toolboxes.py::test_a_tool_that_comes_mid_session_is_called_in_the_next_turn"
)
OLD_CLI = (
    "tests/_session/test_cli_version.py"
    "::test_an_old_cli_can_be_tried_and_what_does_not_hold_is_logged"
)
RESTARTED = (
    "tests/live/test_revival.py::test_killed_at_any_point_of_a_turn_each_prompt_is_answered_once"
)

ELSEWHERE: Mapping[str, Mapping[str, Elsewhere]] = {
    "options": {
        "spawnClaudeCodeProcess": Elsewhere("steersman.ports.Transport", ("option:transport",)),
        "abortController": Elsewhere("steersman.Turn.interrupt"),
        "debug_stderr": Elsewhere("steersman.Options.stderr"),
        "load_timeout_ms": Elsewhere("steersman.Options.load_timeout"),
    },
    "methods": {
        "query()": Elsewhere("steersman.query"),
        "startup()": Elsewhere("steersman.Session.start"),
        "prewarm()": Elsewhere("steersman.Agent.prewarm"),
        "ClaudeSDKClient(options, transport)": Elsewhere("steersman.Agent"),
        "connect": Elsewhere("steersman.Agent.start"),
        "query": Elsewhere("steersman.Session.send"),
        "receive_messages": Elsewhere("steersman.Session.messages"),
        "receive_response": Elsewhere("steersman.Turn.messages"),
        "disconnect": Elsewhere("steersman.Session.aclose"),
        "__aenter__ / __aexit__": Elsewhere("steersman.Agent.session"),
        "get_server_info": Elsewhere(INITIALIZED),
        "supportedCommands": Elsewhere(INITIALIZED, (".commands",), names=(".initialized",)),
        "supportedModels": Elsewhere(INITIALIZED, (".models",), names=(".initialized",)),
        "supportedAgents": Elsewhere(INITIALIZED, (".agents",), names=(".initialized",)),
        "accountInfo": Elsewhere(INITIALIZED, (".account",), names=(".initialized",)),
        "reinitialize": Elsewhere("steersman.control.Initialize"),
        "streamInput": Elsewhere(
            "steersman.Agent.query",
            ("test:tests/live/test_going_back.py::test_prompts_can_come_as_a_stream",),
        ),
    },
    "control_requests": {
        "hook_callback": Elsewhere("steersman.Hooks"),
    },
    "content_blocks": {
        name: Elsewhere("steersman.StreamEvent", (f"text:{name}", f"text:stream_event/{name}"))
        for name in (
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "ping",
            "text_delta",
            "input_json_delta",
            "citations_delta",
            "thinking_delta",
            "signature_delta",
            "compaction_delta",
        )
    },
    "errors": {
        "ClaudeSDKError": Elsewhere("steersman.SteersmanError"),
        "CLIConnectionError": Elsewhere("steersman.errors.ChannelError"),
        "CLINotFoundError(CLIConnectionError)": Elsewhere("steersman.errors.CliNotFound"),
        "ProcessError": Elsewhere("steersman.errors.CliExited"),
        "ResultError(ProcessError)": Elsewhere("steersman.errors.TurnFailed"),
        "bare Exception": Elsewhere("steersman.errors.RequestRefused"),
        "ValueError / TypeError / FileNotFoundError / RuntimeError": Elsewhere(
            "steersman.errors.UsageError"
        ),
        "Error + errorClass": Elsewhere("steersman.errors.Evidence"),
        "ReferenceError + errorClass": Elsewhere("steersman.errors.CliNotExecutable"),
        "result-level failures": Elsewhere("steersman.errors.TurnFailed"),
        "CanUseToolShadowedWarning(UserWarning)": Elsewhere(
            "steersman.options.ShadowedCallbackWarning"
        ),
    },
    "capabilities_live": {
        "interrupt_receipt_v1": Elsewhere(
            "steersman.control.InterruptReceipt", by="steersman.control.Interrupt"
        ),
        "msg_lifecycle_v1": Elsewhere(
            "steersman.Turn.delivery",
            ("test:tests/live/test_delivery.py::test_later_waits_for_a_turn_of_its_own",),
        ),
        "sdk_mcp_tools_list_changed": Elsewhere(
            "steersman.Toolbox.register",
            (f"test:{LATE_TOOL}",),
        ),
    },
    "env": {
        "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": Elsewhere(
            "steersman.Options.allow_old_cli",
            (f"test:{OLD_CLI}",),
        ),
        "CLAUDE_CODE_PROJECT_DIR_NAME": Elsewhere(
            "steersman.sessions.Sessions", (f"test:{FOLDER_NAME}",)
        ),
    },
    "session_functions": {
        **{
            name: Elsewhere(f"steersman.sessions.Sessions.{ours}", (f"test:{OUR_FORK}",))
            for name, ours in {
                "list_sessions": "list",
                "get_session_messages": "messages",
                "rename_session": "rename",
                "tag_session": "tag",
                "delete_session": "delete",
                "fork_session": "fork",
                "archiveSession": "archive",
                "unarchiveSession": "unarchive",
            }.items()
        },
        **{
            name: Elsewhere(f"steersman.sessions.Sessions.{ours}", (f"test:{WHILE_IT_RUNS}",))
            for name, ours in {
                "get_session_info": "info",
                "list_subagents": "agents",
                "get_subagent_messages": "messages",
                "get_subagent_messages_from_store": "messages",
            }.items()
        },
        **{
            name: Elsewhere(f"steersman.sessions.aio.Sessions.{ours}", (f"test:{BY_STORE}",))
            for name, ours in {
                "list_sessions_from_store": "list",
                "get_session_info_from_store": "info",
                "get_session_messages_from_store": "messages",
                "list_subagents_from_store": "agents",
                "rename_session_via_store": "rename",
                "tag_session_via_store": "tag",
                "delete_session_via_store": "delete",
                "fork_session_via_store": "fork",
                "import_session_to_store": "copy_to",
            }.items()
        },
        "InMemorySessionStore": Elsewhere("steersman.stores.memory.MemoryStore"),
        "project_key_for_directory": Elsewhere("steersman.transcripts.project_key"),
        "resolveSettings": Elsewhere("steersman.control.GetSettings"),
        "run_session_store_conformance": Elsewhere("steersman.testing.stores.check"),
    },
    "ts_exports": ELSEWHERE_TS,
}
"""Replacements, by section and official name."""

ALSO_SHOWN_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "control_requests": {
        "can_use_tool": ("option:can_use_tool",),
        "initialize": (".initialized",),
    },
    "env": {"CLAUDE_CODE_RESUME_INTERRUPTED_TURN": (f"test:{RESTARTED}",)},
}
"""Additional marks. `test:` names a test by hand, which must exist."""

NOT_LIVE: Mapping[str, frozenset[str]] = {
    "options": frozenset({"onUserDialog"}),
    "control_requests": frozenset({"request_user_dialog"}),
    "ts_exports": frozenset({"OnUserDialog", "UserDialogRequest", "UserDialogResult"}),
}
"""Things that live tests name but do not exercise: dialogs need a login."""

REASONS: Mapping[str, Mapping[str, str]] = {
    "options": {
        "executable": "JavaScript runtime",
        "executableArgs": "JavaScript runtime",
    },
    "errors": {
        "CLIJSONDecodeError": (
            "done differently: a line that is not JSON is recorded as noise and does not raise"
        ),
        "MessageParseError": (
            "done differently: an unknown message is an `UnknownMessage`, with its `raw`"
        ),
        "AbortError": "JavaScript runtime: here a cancelled task is `asyncio.CancelledError`",
        "SpareProcess.claimed rejections": WARM,
        "warnings": "JavaScript runtime: warnings of the Node process",
        "DirectConnectError": "not declared: hosted sessions only",
    },
    "hooks": {
        event.__name__: f"done differently: refused by `Hooks.on`: {why}"
        for event, why in NEVER_CALLED.items()
    },
    "env": {
        "CLAUDE_AGENT_SDK_VERSION": (
            "done differently: not set, because it names a release of the official SDK"
        ),
        "CLAUDE_CODE_SDK_READS_STARTUP_MARKS": WARM,
        "CLAUDE_CODE_SDK_HAS_OAUTH_REFRESH": "not declared: undeclared callbacks set it",
        "CLAUDE_CODE_SDK_HAS_HOST_AUTH_REFRESH": "not declared: undeclared callbacks set it",
        "CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP": (
            "not declared: no released CLI reads it; the SDK requires version 999"
        ),
        "NODE_OPTIONS": "JavaScript runtime",
        "DEBUG": "JavaScript runtime",
        "DEBUG_CLAUDE_AGENT_SDK": "JavaScript runtime: the SDK's own debug file",
        "TRACEPARENT": TRACES,
        "TRACESTATE": TRACES,
        "CLAUDE_SECURESTORAGE_CONFIG_DIR": "Windows",
        "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS": (
            "done differently: stdin stays open until the session is closed; `Session.wait()` and"
            " queries over a stream of prompts keep to it"
        ),
        "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": "done differently: the option `startup` has the limits",
        "PWD": "done differently: not set; the CLI is started in `cwd`",
        "CLAUDE_AGENT_SDK_DISABLE_MCP_MANIFESTS": (
            "done differently: the CLI requests the list of tools; manifests are sent only when a"
            " lost CLI is replaced in the middle of a turn"
        ),
    },
    "session_functions": {
        "filterEscalatingDefaultMode": SETTINGS,
        "matchDeniedModels": SETTINGS,
    },
    "content_blocks": {
        "mid_conv_system": "kept as data: an `UnknownBlock`, with its `raw`",
        "mcp_tool_listing": "not declared: only the API's SDK has a type; an `UnknownBlock` here",
        "tool_reference": "kept as data: in the content of a `ToolResultBlock`",
    },
    "capabilities_live": {
        "sdk_mcp_manifests": (
            "done differently: not looked at; manifests are sent when a lost CLI is replaced in the"
            " middle of a turn"
        ),
    },
    "ts_exports": REASONS_TS,
    "tools": {
        "McpInput": "kept as data: any keys, so it stays a mapping",
        "McpOutput": "kept as data: any keys, so it stays a mapping",
    },
}

WHOLE_SECTION: Mapping[str, str] = {
    "env": "done differently: not passed on unless `env` or `inherit_env` names it",
    "capabilities_live": (
        "kept as data: in the answer to initialize; nothing here depends on it yet"
    ),
    "untyped_tools": "not declared: no type in sdk-tools.d.ts, so its input stays a mapping",
    "ts_exports": "not yet: a constant that only the TypeScript SDK has",
    "ts_entry_points": (
        "hosted only: here `steersman.web` serves sessions of this machine to a browser"
    ),
}
"""Reasons for everything that is missing in a section."""
