"""System messages: the CLI speaking about itself and its session. Told apart by `subtype`.

To add one, write its class in the file of its topic and name it in that file's union:

    system      what the session is made of, and what it is doing
    notes       what a person should be told
    limits      what the API refuses: retries, rate limits, refusals, logins
    tasks       subagents and background work
    hook_runs   hooks that are commands
    transcripts what is written to disk, or was lost
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, WireStruct, many
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
    """What every system message has."""

    session_id: str = ""
    uuid: str | None = None


class Init(SystemWire, frozen=True, kw_only=True, tag="init"):
    """A turn begins; these are its tools and its model. Comes once per turn."""

    cwd: str = ""
    model: str = ""
    tools: list[str] = []
    mcp_servers: list[dict[str, Any]] = []
    permission_mode: str = field(default="", name="permissionMode")
    slash_commands: list[str] = []
    terminal_slash_commands: list[str] = []
    agents: list[str] = []
    skills: list[str] = []
    plugins: list[dict[str, Any]] = []
    plugin_errors: list[dict[str, Any]] = []
    claude_code_version: str = ""
    api_key_source: str = field(default="", name="apiKeySource")
    output_style: str = ""
    betas: list[str] = []
    effort: str | None = None
    view_mode: str | None = None
    fast_mode_state: str | None = None
    fast_mode_disabled_reason: str | None = None
    capabilities: list[str] = []


class SessionStateChanged(SystemWire, frozen=True, kw_only=True, tag="session_state_changed"):
    """The CLI went idle, started running, or waits for us."""

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
    """History before this point was summed up."""

    compact_metadata: dict[str, Any] = {}
    logical_parent_uuid: str | None = None


class ThinkingTokens(SystemWire, frozen=True, kw_only=True, tag="thinking_tokens"):
    """How much the model has thought so far, by estimate."""

    estimated_tokens: int = 0
    estimated_tokens_delta: int = 0
    user_message_uuid: str | None = None


class SlashCommand(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """A command that a prompt may begin with."""

    name: str = ""
    description: str = ""
    argument_hint: str = ""
    aliases: list[str] | None = None
    builtin: bool | None = None


class CommandsChanged(SystemWire, frozen=True, kw_only=True, tag="commands_changed"):
    """These are the slash commands now, all of them."""

    READERS: ClassVar[Readers] = {"commands": many(SlashCommand)}

    commands: list[SlashCommand] = []


class ControlRequestProgress(SystemWire, frozen=True, kw_only=True, tag="control_request_progress"):
    """A control request that takes long is under way, or tries again."""

    request_id: str = ""
    status: str = ""
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None


class PermissionDenied(SystemWire, frozen=True, kw_only=True, tag="permission_denied"):
    """A tool was refused without asking us."""

    tool_name: str = ""
    tool_use_id: str = ""
    message: str = ""
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None


class ElicitationComplete(SystemWire, frozen=True, kw_only=True, tag="elicitation_complete"):
    """What a tool server asked for in a browser is done."""

    mcp_server_name: str = ""
    elicitation_id: str = ""


class PluginInstall(SystemWire, frozen=True, kw_only=True, tag="plugin_install"):
    """A plugin is being installed, is installed, or is not."""

    status: str = ""
    name: str | None = None
    error: str | None = None


class WorkerShuttingDown(SystemWire, frozen=True, kw_only=True, tag="worker_shutting_down"):
    """The machine that hosts the CLI is about to go."""

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
