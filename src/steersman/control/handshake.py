"""The verb that opens a conversation, and what a CLI tells of itself in return."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import field

from steersman._struct import Readers, many_objects
from steersman.control.models import ModelInfo
from steersman.control.skills import AgentInfo, CommandInfo
from steersman.control.verbs import Answer, Part, Verb

__all__ = ["AccountInfo", "Initialize", "Initialized"]


class AccountInfo(Part, frozen=True, kw_only=True):
    """Who pays, as far as the CLI tells."""

    email: str | None = None
    organization: str | None = None
    subscription_type: str | None = None
    token_source: str | None = None
    api_key_source: str | None = None
    api_provider: str = ""


class Initialized(Answer, frozen=True, kw_only=True):
    """What this CLI is and can do."""

    READERS: ClassVar[Readers] = {
        "commands": many_objects(CommandInfo),
        "agents": many_objects(AgentInfo),
        "models": many_objects(ModelInfo),
    }

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
    """A part of what `system/init` lists at the start of each turn."""
    hook_on_failure_supported: bool = field(default=False, name="hook_on_failure_supported")
    hooks_applied: bool | None = field(default=None, name="hooks_applied")
    plugins_applied: bool | None = field(default=None, name="plugins_applied")
    sdk_mcp_manifests_parked: dict[str, str] = field(
        default_factory=dict[str, str], name="sdk_mcp_manifests_parked"
    )
    fast_mode_state: str = field(default="", name="fast_mode_state")
    fast_mode_disabled_reason: str = field(default="", name="fast_mode_disabled_reason")


class Initialize(Verb[Initialized], frozen=True, kw_only=True, tag="initialize"):
    """Open the conversation: hooks, tool servers, prompts, agents.

    A session sends it by itself. Sent again, its hooks replace the earlier ones, guards included;
    without any those stay.
    """

    TIMEOUT: ClassVar[float | None] = 120.0

    hooks: dict[str, list[dict[str, Any]]] | None = None
    agents: dict[str, Any] | None = None
    sdk_mcp_servers: list[str] | None = field(default=None, name="sdkMcpServers")
    sdk_mcp_server_configs: dict[str, dict[str, Any]] | None = field(
        default=None, name="sdkMcpServerConfigs"
    )
    sdk_mcp_server_manifests: dict[str, dict[str, Any]] | None = field(
        default=None, name="sdkMcpServerManifests"
    )
    sdk_mcp_server_manifests_origin: Literal["host_per_send"] | None = field(
        default=None, name="sdkMcpServerManifestsOrigin"
    )
    json_schema: dict[str, Any] | None = field(default=None, name="jsonSchema")
    system_prompt: list[str] | None = field(default=None, name="systemPrompt")
    append_system_prompt: str | None = field(default=None, name="appendSystemPrompt")
    system_prompt_snapshot: bool | None = field(default=None, name="systemPromptSnapshot")
    plan_mode_instructions: str | None = field(default=None, name="planModeInstructions")
    managed_settings: dict[str, Any] | None = field(default=None, name="managedSettings")
    tool_aliases: dict[str, str] | None = field(default=None, name="toolAliases")
    exclude_dynamic_sections: bool | None = field(default=None, name="excludeDynamicSections")
    title: str | None = None
    skills: list[str] | None = None
    prompt_suggestions: bool | None = field(default=None, name="promptSuggestions")
    agent_progress_summaries: bool | None = field(default=None, name="agentProgressSummaries")
    forward_subagent_text: bool | None = field(default=None, name="forwardSubagentText")
    supported_dialog_kinds: list[str] | None = field(default=None, name="supportedDialogKinds")
    per_task_stop_affordance: bool | None = field(default=None, name="perTaskStopAffordance")
    plugins: list[dict[str, Any]] | None = None
