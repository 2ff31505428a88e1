"""System messages: the CLI speaking about itself. Told apart by `subtype`.

To add one, write its class here (or in the file of its topic) and name it in the union below.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from steersman._values import Wire

__all__ = [
    "ApiRetry",
    "CompactBoundary",
    "Informational",
    "Init",
    "PermissionDenied",
    "SessionStateChanged",
    "Status",
    "SystemMessage",
    "SystemWire",
]


class SystemWire(Wire, frozen=True, kw_only=True, tag_field="subtype"):
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
    agents: list[str] = []
    skills: list[str] = []
    plugins: list[dict[str, Any]] = []
    claude_code_version: str = ""
    api_key_source: str = field(default="", name="apiKeySource")
    output_style: str = ""
    capabilities: list[str] = []


class SessionStateChanged(SystemWire, frozen=True, kw_only=True, tag="session_state_changed"):
    """The CLI went idle, started running, or waits for us."""

    state: str = ""


class Status(SystemWire, frozen=True, kw_only=True, tag="status"):
    """Compaction, a request to the API, or another permission mode."""

    status: str | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    compact_result: str | None = None
    compact_error: str | None = None


class CompactBoundary(SystemWire, frozen=True, kw_only=True, tag="compact_boundary"):
    """History before this point was summed up."""

    compact_metadata: dict[str, Any] = {}


class ApiRetry(SystemWire, frozen=True, kw_only=True, tag="api_retry"):
    """The API failed; the CLI will try again."""

    attempt: int = 0
    max_retries: int = 0
    retry_delay_ms: float = 0
    error_status: int | None = None
    error: str = ""


class PermissionDenied(SystemWire, frozen=True, kw_only=True, tag="permission_denied"):
    """A tool was refused without asking us."""

    tool_name: str = ""
    tool_use_id: str = ""
    message: str = ""


class Informational(SystemWire, frozen=True, kw_only=True, tag="informational"):
    """A note for the person: a hook that failed, a prompt that was blocked."""

    content: str = ""
    level: str = ""
    tag: str | None = None


SystemMessage = (
    Init
    | SessionStateChanged
    | Status
    | CompactBoundary
    | ApiRetry
    | PermissionDenied
    | Informational
)
