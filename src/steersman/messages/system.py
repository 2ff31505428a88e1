"""System messages: the CLI's reports about itself and its session.

The field `subtype` decides the class. To add one, write its class in the module of its topic and
name it in the union there:

    system      what the session has, and its state
    notes       notes for the user, and runs of command hooks
    limits      retries, rate limits, refusals, logins
    tasks       subagents and background work
    transcripts session files: written, copied, lost
"""

from __future__ import annotations

from msgspec import field

from steersman._json import JsonDict
from steersman._struct import WireStruct
from steersman.messages.base import MessageWire

__all__ = [
    "CommandsChanged",
    "CompactBoundary",
    "ControlRequestProgress",
    "ElicitationComplete",
    "Init",
    "PermissionDenied",
    "PluginInstall",
    "SessionStateChanged",
    "SessionTitleChanged",
    "SlashCommand",
    "Status",
    "SystemMessage",
    "SystemWire",
    "ThinkingTokens",
    "WorkerShuttingDown",
]


class SystemWire(MessageWire, frozen=True, kw_only=True, tag_field="subtype"):
    """The fields of every system message."""

    session_id: str = ""
    uuid: str | None = None

    @property
    def type(self) -> str:
        """Always `system`; `subtype` decides the class."""
        return "system"

    @property
    def subtype(self) -> str:
        """The CLI's word for a message of this class, such as `init`."""
        return str(self.__struct_config__.tag)


class Init(SystemWire, frozen=True, kw_only=True, tag="init"):
    """A turn begins; these are its tools and its model. Comes once per turn."""

    cwd: str = ""
    model: str = ""
    tools: list[str] = []
    mcp_servers: list[JsonDict] = []
    permission_mode: str = field(default="", name="permissionMode")
    slash_commands: list[str] = []
    terminal_slash_commands: list[str] = []
    agents: list[str] = []
    skills: list[str] = []
    plugins: list[JsonDict] = []
    plugin_errors: list[JsonDict] = []
    claude_code_version: str = ""
    api_key_source: str = field(default="", name="apiKeySource")
    output_style: str = ""
    betas: list[str] = []
    effort: str | None = None
    view_mode: str | None = None
    fast_mode_state: str | None = None
    fast_mode_disabled_reason: str | None = None
    capabilities: list[str] = []
    original_cwd: str | None = None
    """The directory in which the CLI was started; `cwd` follows `cd`."""
    additional_directories: list[str] = []
    memory_paths: dict[str, str] = {}
    messaging_socket_path: str | None = None
    user_message_uuids: list[str] = []
    """The prompts that this turn answers."""
    per_turn_effort_active: bool | None = None
    ultrathink_available: bool | None = None
    ultrathink_typed_raises: bool | None = None
    analytics_disabled: bool | None = None
    product_feedback_disabled: bool | None = None


class SessionStateChanged(SystemWire, frozen=True, kw_only=True, tag="session_state_changed"):
    """The session became idle, started to run, or waits for an answer."""

    state: str = ""
    sdk_host_only: bool = False


class SessionTitleChanged(SystemWire, frozen=True, kw_only=True, tag="session_title_changed"):
    """The session has another title."""

    title: str = ""


class Status(SystemWire, frozen=True, kw_only=True, tag="status"):
    """Compaction, a request to the API, or another permission mode."""

    status: str | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    compact_result: str | None = None
    compact_error: str | None = None


class CompactBoundary(SystemWire, frozen=True, kw_only=True, tag="compact_boundary"):
    """The history before this point was replaced by a summary."""

    compact_metadata: JsonDict = {}
    logical_parent_uuid: str | None = None


class ThinkingTokens(SystemWire, frozen=True, kw_only=True, tag="thinking_tokens"):
    """An estimate of the thinking tokens so far."""

    estimated_tokens: int = 0
    estimated_tokens_delta: int = 0
    user_message_uuid: str | None = None


class SlashCommand(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """A slash command."""

    name: str = ""
    description: str = ""
    argument_hint: str = ""
    aliases: list[str] | None = None
    builtin: bool | None = None


class CommandsChanged(SystemWire, frozen=True, kw_only=True, tag="commands_changed"):
    """The slash commands changed; `commands` has all of them."""

    commands: list[SlashCommand] = []


class ControlRequestProgress(SystemWire, frozen=True, kw_only=True, tag="control_request_progress"):
    """A control request that takes long is in progress, or is retried."""

    request_id: str = ""
    status: str = ""
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None


class PermissionDenied(SystemWire, frozen=True, kw_only=True, tag="permission_denied"):
    """A tool was denied without a permission request to us."""

    tool_name: str = ""
    tool_use_id: str = ""
    message: str = ""
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None


class ElicitationComplete(SystemWire, frozen=True, kw_only=True, tag="elicitation_complete"):
    """An elicitation of an MCP server was completed in a browser."""

    mcp_server_name: str = ""
    elicitation_id: str = ""


class PluginInstall(SystemWire, frozen=True, kw_only=True, tag="plugin_install"):
    """A plugin is being installed, was installed, or could not be installed."""

    status: str = ""
    name: str | None = None
    error: str | None = None


class WorkerShuttingDown(SystemWire, frozen=True, kw_only=True, tag="worker_shutting_down"):
    """The machine that hosts the CLI will shut down."""

    reason: str = ""


SystemMessage = (
    Init
    | SessionStateChanged
    | SessionTitleChanged
    | Status
    | CompactBoundary
    | ThinkingTokens
    | CommandsChanged
    | ControlRequestProgress
    | PermissionDenied
    | ElicitationComplete
    | PluginInstall
    | WorkerShuttingDown
)
