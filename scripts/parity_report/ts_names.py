"""Kept by hand: what corresponds to names that the TypeScript SDK exports and we do not.

Most are types of options, of replies of hooks and of answers. Here an option is a field, and an
answer comes from its verb, whose test shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from scripts.parity_report.instead import SETTINGS, WARM, Elsewhere
from scripts.parity_report.marks import mark_of
from steersman.hooks import SessionEnd, Stop, WorktreeCreate

__all__ = ["ELSEWHERE_TS", "REASONS_TS"]


def _option(name: str, *names: str) -> dict[str, Elsewhere]:
    return dict.fromkeys(names, Elsewhere(f"steersman.Options.{name}"))


def _port(name: str, option: str) -> Elsewhere:
    return Elsewhere(f"steersman.ports.{name}", (f"option:{option}",))


def _forms(option: str, **words: str) -> dict[str, Elsewhere]:
    """Return types of forms of an option. A test must have the form's own word."""
    ours = f"steersman.Options.{option}"
    return {name: Elsewhere(ours, names=(f"text:{word}",)) for name, word in words.items()}


def _field(owner: str, name: str) -> Elsewhere:
    return Elsewhere(f"steersman.{owner}.{name}")


def _answer(name: str, verb: str) -> Elsewhere:
    return Elsewhere(f"steersman.control.{name}", by=f"steersman.control.{verb}")


ELSEWHERE_TS: Mapping[str, Elsewhere] = {
    # Sessions and processes
    "Query": Elsewhere("steersman.Session", by="steersman.Agent.session"),
    "Transport": _port("Transport", "transport"),
    "SpawnedProcess": _port("Channel", "transport"),
    "SpawnOptions": _port("Launch", "transport"),
    # Stored sessions
    "SDKSessionInfo": Elsewhere(
        "steersman.sessions.SessionInfo", by="steersman.sessions.Sessions.info"
    ),
    "SessionMessage": Elsewhere(
        "steersman.sessions.StoredMessage", by="steersman.sessions.Sessions.messages"
    ),
    "SessionStore": _port("SessionStore", "session_store"),
    **_option("session_store_flush", "SessionStoreFlush"),
    "SessionKey": Elsewhere("steersman.transcripts.SessionKey"),
    "SessionStoreEntry": Elsewhere("steersman.transcripts.SessionStoreEntry"),
    "SessionSummaryEntry": Elsewhere("steersman.transcripts.SessionSummaryEntry"),
    # Options
    **_option("effort", "EffortLevel"),
    **_option("setting_sources", "SettingSource"),
    **_option("settings", "Settings"),
    **_option("sandbox", "SandboxSettings"),
    **_forms(
        "sandbox",
        SandboxCredentialsConfig="credentials",
        SandboxFilesystemConfig="filesystem",
        SandboxIgnoreViolations="ignoreViolations",
        SandboxNetworkConfig="network",
    ),
    **_option("betas", "SdkBeta"),
    **_option("thinking", "ThinkingConfig"),
    **_forms(
        "thinking",
        ThinkingAdaptive="adaptive",
        ThinkingEnabled="enabled",
        ThinkingDisabled="disabled",
    ),
    **_option("tool_config", "ToolConfig"),
    **_option(
        "output_format",
        "OutputFormat",
        "BaseOutputFormat",
    ),
    **_forms("output_format", OutputFormatType="json_schema", JsonSchemaOutputFormat="json_schema"),
    **_option(
        "mcp_servers",
        "McpServerConfig",
        "McpServerConfigForProcessTransport",
    ),
    **_forms(
        "mcp_servers",
        McpStdioServerConfig="command",
        McpHttpServerConfig="http",
        McpSSEServerConfig="sse",
        McpSdkServerConfig="sdk",
        McpSdkServerConfigWithInstance="instance",
    ),
    **_option("permission_mode", "PermissionMode"),
    "SdkPluginConfig": Elsewhere("steersman.options.Plugin"),
    "AgentMcpServerSpec": Elsewhere("steersman.options.AgentDefinition"),
    # Tools in this process
    "createSdkMcpServer": Elsewhere("steersman.Toolbox"),
    "SdkMcpToolDefinition": Elsewhere("steersman.tools.Tool", by="steersman.tool"),
    "BUILTIN_TOOL_NAMES": Elsewhere(
        "steersman.messages.builtin.INPUTS", ("name:steersman.messages.builtin.INPUTS",)
    ),
    # Permissions and dialogs
    "CanUseTool": _port("Approver", "can_use_tool"),
    "OnElicitation": _port("ElicitationHandler", "on_elicitation"),
    "OnUserDialog": _port("DialogHandler", "on_user_dialog"),
    "ElicitationRequest": Elsewhere("steersman.permissions.Elicitation"),
    "UserDialogRequest": Elsewhere("steersman.permissions.UserDialog"),
    "UserDialogResult": Elsewhere("steersman.permissions.DialogAnswer"),
    "PermissionResult": Elsewhere("steersman.Allow"),
    "PermissionRuleValue": Elsewhere("steersman.permissions.ToolRule"),
    "PermissionUpdate": Elsewhere("steersman.permissions.AddRules"),
    "PermissionUpdateDestination": _field("permissions.AddRules", "destination"),
    "PermissionBehavior": _field("permissions.AddRules", "behavior"),
    # Hooks
    "HookCallback": Elsewhere("steersman.Hooks"),
    "HookCallbackMatcher": Elsewhere("steersman.hooks.HookMatcher"),
    **dict.fromkeys(
        ("HookEvent", "HookInput", "BaseHookInput"),
        Elsewhere(
            "steersman.hooks.HookEvent",
            ("test:tests/live/test_hook_events.py::test_the_events_around_turns_fire",),
            names=tuple(map(mark_of, (Stop, SessionEnd, WorktreeCreate))),
        ),
    ),
    "HookJSONOutput": Elsewhere("steersman.hooks.Reply"),
    "SyncHookJSONOutput": Elsewhere("steersman.hooks.Reply"),
    "AsyncHookJSONOutput": Elsewhere("steersman.hooks.AsyncReply"),
    "HookPermissionDecision": Elsewhere("steersman.hooks.ToolVerdict"),
    "PermissionDecisionClassification": Elsewhere(
        "steersman.permissions.Classification", by="steersman.permissions.Allow"
    ),
    "PostToolBatchToolCall": _field("hooks.PostToolBatch", "tool_calls"),
    "ExitReason": _field("hooks.SessionEnd", "reason"),
    # Messages
    "SDKMessage": Elsewhere("steersman.messages.Message", by="steersman.Session.messages"),
    "SDKResultMessage": Elsewhere("steersman.Result"),
    "SDKStatus": _field("messages.Status", "status"),
    "SDKRateLimitInfo": Elsewhere("steersman.messages.limits.RateLimitInfo"),
    "SDKMessageOrigin": Elsewhere("steersman.messages.turns.MessageOrigin"),
    "SDKMcpResourceLink": Elsewhere("steersman.messages.tasks.McpResourceLink"),
    "SDKDeferredToolUse": Elsewhere("steersman.messages.turns.DeferredToolUse"),
    "SDKAssistantMessageError": _field("messages.Assistant", "error"),
    "SDKPermissionDenial": Elsewhere("steersman.TurnResult.permission_denials"),
    "NonNullableUsage": Elsewhere("steersman.messages.usage.Usage"),
    "ApiKeySource": _field("messages.Init", "api_key_source"),
    "TerminalReason": _field("messages.Result", "terminal_reason"),
    "FastModeState": _field("messages.Init", "fast_mode_state"),
    "FastModeDisabledReason": _field("messages.Init", "fast_mode_disabled_reason"),
    "SDKStartupFailureReason": Elsewhere("steersman.errors.StartupError"),
    # Verbs and their answers
    "SDKControlRequest": Elsewhere("steersman.control.Verb", by="steersman.control.SetModel"),
    "SDKControlResponse": Elsewhere("steersman.control.Answer", by="steersman.control.SetModel"),
    "SDKControlInitializeResponse": _answer("Initialized", "Initialize"),
    "SDKControlInterruptResponse": _answer("InterruptReceipt", "Interrupt"),
    "AgentInfo": _answer("AgentInfo", "Initialize"),
    "AccountInfo": _answer("AccountInfo", "Initialize"),
    "ModelInfo": _answer("ModelInfo", "ListModels"),
    "SDKContextUsage": _answer("ContextUsage", "GetContextUsage"),
    "SDKContextUsageCategory": _answer("ContextCategory", "GetContextUsage"),
    "SDKControlGetContextUsageResponse": _answer("ContextUsage", "GetContextUsage"),
    "SDKControlGetUsageResponse": _answer("UsageReport", "GetUsage"),
    "SDKUsageReport": _answer("UsageReport", "GetUsage"),
    "SDKControlListPermissionRulesResponse": _answer("PermissionRules", "ListPermissionRules"),
    "SDKControlPermissionRulesState": _answer("PermissionState", "ListPermissionRules"),
    "SDKPermissionRuleEntry": _answer("PermissionRule", "ListPermissionRules"),
    "SDKPermissionRuleDescription": _answer("PermissionRule", "ListPermissionRules"),
    "SDKPermissionWorkspaceDirectory": _answer("PermissionState", "ListPermissionRules"),
    "SDKControlMcpReadResourceResponse": _answer("ResourceContents", "McpReadResource"),
    "SDKControlReadFileResponse": _answer("FileContents", "ReadFile"),
    "SDKControlReloadOutputStylesResponse": _answer("OutputStyles", "ReloadOutputStyles"),
    "SDKControlReloadPluginsResponse": _answer("PluginsReloaded", "ReloadPlugins"),
    "SDKControlReloadSkillsResponse": _answer("SkillsReloaded", "ReloadSkills"),
    "McpServerStatus": _answer("McpServerStatus", "McpStatus"),
    "McpServerStatusConfig": _answer("McpServerStatus", "McpStatus"),
    "McpSetServersResult": _answer("McpServersSet", "McpSetServers"),
    "RewindFilesResult": _answer("Rewound", "RewindFiles"),
}

REASONS_TS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "ForkSessionOptions",
            "ForkSessionResult",
            "GetSessionInfoOptions",
            "GetSessionMessagesOptions",
            "GetSubagentMessagesOptions",
            "ImportSessionToStoreOptions",
            "ListSessionsOptions",
            "ListSubagentsOptions",
            "SessionMutationOptions",
        ),
        "done differently: arguments and results of the methods of `steersman.sessions.Sessions`",
    ),
    **dict.fromkeys(
        (
            "ConfigScope",
            "DeniedModelsMatch",
            "PolicySettingsOrigin",
            "ProvenanceEntry",
            "ResolveSettingsOptions",
            "ResolvedSettingSource",
            "ResolvedSettings",
        ),
        SETTINGS,
    ),
    **dict.fromkeys(("ClaimOptions", "SpareProcess", "WarmQuery"), WARM),
    "HOOK_EVENTS": "done differently: no list of names; `steersman.hooks` has a class per event",
    "EXIT_REASONS": "done differently: no list; `hooks.SessionEnd.reason` is any text of the CLI",
    "AnyZodRawShape": "JavaScript runtime: shapes of zod; here the signature is the schema",
    "InferShape": "JavaScript runtime: shapes of zod; here the signature is the schema",
    "DirectConnectTransport": "hosted only",
    "parseDirectConnectUrl": "hosted only",
    "McpClaudeAIProxyServerConfig": "hosted only",
    "SDKActiveGoalMessage": "kept as data: an `UnknownMessage`, with its `raw`",
    "SDKSettingsParseError": "kept as data: in the `errors` of `control.GetSettings`",
    "McpServerProvenance": "kept as data: in the `raw` of a `control.McpServerStatus`",
    "McpServerToolPolicy": "kept as data: a mapping in the configuration of a server",
    "CommandMatcher": "not declared: internal to the SDK",
    "FileIndex": "not declared: internal to the SDK",
    "BackgroundTaskSummary": "kept as data: in the mappings of `hooks.Stop`",
    "SessionCronSummary": "kept as data: in the mappings of `hooks.Stop`",
}
