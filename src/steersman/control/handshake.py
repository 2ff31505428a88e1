"""The initialize request and its answer."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import field

from steersman._json import JsonDict
from steersman.control.models import ModelInfo
from steersman.control.skills import AgentInfo, CommandInfo
from steersman.control.verbs import Answer, Part, Verb

__all__ = ["AccountInfo", "Initialize", "Initialized"]


class AccountInfo(Part, frozen=True, kw_only=True):
    """The account that pays, as far as the CLI reports it."""

    email: str | None = None
    organization: str | None = None
    subscription_type: str | None = None
    token_source: str | None = None
    api_key_source: str | None = None
    api_provider: str = ""


class Initialized(Answer, frozen=True, kw_only=True):
    """The version, the capabilities, the models and the commands of this CLI."""

    commands: list[CommandInfo] = []
    agents: list[AgentInfo] = []
    models: list[ModelInfo] = []
    account: AccountInfo = field(default_factory=AccountInfo)
    output_style: str = field(default="", name="output_style")
    available_output_styles: list[str] = field(
        default_factory=list[str], name="available_output_styles"
    )
    pid: int | None = None
    claude_code_version: str = field(default="", name="claude_code_version")
    current_permission_mode: str = field(default="", name="current_permission_mode")
    capabilities: list[str] = []
    """Some of the capabilities that `system/init` lists at the start of each turn."""
    hook_on_failure_supported: bool = field(default=False, name="hook_on_failure_supported")
    hooks_applied: bool | None = field(default=None, name="hooks_applied")
    plugins_applied: bool | None = field(default=None, name="plugins_applied")
    sdk_mcp_manifests_parked: dict[str, str] = field(
        default_factory=dict[str, str], name="sdk_mcp_manifests_parked"
    )
    fast_mode_state: str = field(default="", name="fast_mode_state")
    fast_mode_disabled_reason: str = field(default="", name="fast_mode_disabled_reason")
    session_state: str = field(default="", name="session_state")
    """`idle`, or `running` if the CLI already continues an interrupted turn."""
    user_output_styles_dir: str | None = field(default=None, name="user_output_styles_dir")
    other_hook_ask_outranks_host: bool | None = field(
        default=None, name="other_hook_ask_outranks_host"
    )
    feedback_mode: JsonDict | None = field(default=None, name="feedback_mode")
    analytics_disabled: bool | None = field(default=None, name="analytics_disabled")
    remote_control_available: bool | None = field(default=None, name="remote_control_available")
    remote_control_auto_enable: bool | None = field(default=None, name="remote_control_auto_enable")
    remote_control_auto_connect_default: bool | None = field(
        default=None, name="remote_control_auto_connect_default"
    )
    remote_control_auto_on_by_default: bool | None = field(
        default=None, name="remote_control_auto_on_by_default"
    )
    ide_rc_auto_enable_gate: bool | None = field(default=None, name="ide_rc_auto_enable_gate")


class Initialize(Verb[Initialized], frozen=True, kw_only=True, tag="initialize"):
    """Open the connection: hooks, in-process MCP servers, system prompts, agents.

    A session sends this request itself. If it is sent again, its hooks replace all earlier ones,
    guards included; without hooks, the earlier ones stay.
    """

    TIMEOUT: ClassVar[float | None] = 120.0

    hooks: dict[str, list[JsonDict]] | None = None
    agents: JsonDict | None = None
    sdk_mcp_servers: list[str] | None = field(default=None, name="sdkMcpServers")
    sdk_mcp_server_configs: dict[str, JsonDict] | None = field(
        default=None, name="sdkMcpServerConfigs"
    )
    sdk_mcp_server_manifests: dict[str, JsonDict] | None = field(
        default=None, name="sdkMcpServerManifests"
    )
    sdk_mcp_server_manifests_origin: Literal["host_per_send"] | None = field(
        default=None, name="sdkMcpServerManifestsOrigin"
    )
    json_schema: JsonDict | None = field(default=None, name="jsonSchema")
    system_prompt: list[str] | None = field(default=None, name="systemPrompt")
    append_system_prompt: str | None = field(default=None, name="appendSystemPrompt")
    system_prompt_snapshot: bool | None = field(default=None, name="systemPromptSnapshot")
    plan_mode_instructions: str | None = field(default=None, name="planModeInstructions")
    managed_settings: JsonDict | None = field(default=None, name="managedSettings")
    tool_aliases: dict[str, str] | None = field(default=None, name="toolAliases")
    exclude_dynamic_sections: bool | None = field(default=None, name="excludeDynamicSections")
    title: str | None = None
    skills: list[str] | None = None
    prompt_suggestions: bool | None = field(default=None, name="promptSuggestions")
    agent_progress_summaries: bool | None = field(default=None, name="agentProgressSummaries")
    forward_subagent_text: bool | None = field(default=None, name="forwardSubagentText")
    supported_dialog_kinds: list[str] | None = field(default=None, name="supportedDialogKinds")
    per_task_stop_affordance: bool | None = field(default=None, name="perTaskStopAffordance")
    plugins: list[JsonDict] | None = None
