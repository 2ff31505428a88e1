"""Verbs about MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import field

from steersman._json import Json, JsonDict
from steersman.control.verbs import Answer, Milliseconds, Part, Text, ToolName, UiUri, Verb, check
from steersman.errors import UsageError

__all__ = [
    "McpCall",
    "McpCallResult",
    "McpMessage",
    "McpReadResource",
    "McpReconnect",
    "McpResource",
    "McpServerInfo",
    "McpServerStatus",
    "McpServers",
    "McpServersSet",
    "McpSetServers",
    "McpStatus",
    "McpToggle",
    "McpToolInfo",
    "OverrideSet",
    "ResourceContents",
    "SetMcpPermissionModeOverride",
    "Staging",
]

CALL_TIME = 120.0
"""Seconds that the CLI allows a tool by default."""
MARGIN = 30.0
TOOL_USE_ID_META = "claudecode/toolUseId"
"""The key in `_meta` of a `tools/call` request that holds the id of the tool use it belongs to."""


class McpServerInfo(Part, frozen=True, kw_only=True):
    """The name and version that an MCP server reports."""

    name: str = ""
    version: str = ""


class McpToolInfo(Part, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    name: str = ""
    description: str = ""
    annotations: JsonDict = {}


class McpServerStatus(Part, frozen=True, kw_only=True):
    """The status of one MCP server."""

    name: str = ""
    status: str = ""
    """`connected`, `pending`, `failed`, `disabled` or `needs-auth`."""
    error: str = ""
    server_info: McpServerInfo = field(default_factory=McpServerInfo)
    config: JsonDict = {}
    transport: str = ""
    scope: str = ""
    source: str = ""
    tools: list[McpToolInfo] = []
    """Empty until the server is connected."""


class McpServers(Answer, frozen=True, kw_only=True):
    """The status of all MCP servers."""

    servers: list[McpServerStatus] = field(default_factory=list[McpServerStatus], name="mcpServers")


class McpStatus(Verb[McpServers], frozen=True, kw_only=True, tag="mcp_status"):
    """Request the status of all MCP servers."""

    live_reply: bool = field(default=False, name="liveReply")


class McpReconnect(Verb[Answer], frozen=True, kw_only=True, tag="mcp_reconnect"):
    """Connect to an MCP server again. Refused for in-process servers."""

    TIMEOUT: ClassVar[float | None] = 120.0

    server_name: Text = field(name="serverName")


class McpToggle(Verb[Answer], frozen=True, kw_only=True, tag="mcp_toggle"):
    """Disable or enable an MCP server."""

    TIMEOUT: ClassVar[float | None] = 120.0

    server_name: Text = field(name="serverName")
    enabled: bool


class McpServersSet(Answer, frozen=True, kw_only=True):
    """The changes. A server that could not be connected is in `added` and in `errors`."""

    added: list[str] = []
    removed: list[str] = []
    errors: dict[str, str] = {}


class McpSetServers(Verb[McpServersSet], frozen=True, kw_only=True, tag="mcp_set_servers"):
    """Replace the in-process MCP servers, and those that this verb has added before.

    External servers that were configured at the start stay. In-process servers that are not named
    again are removed.
    """

    TIMEOUT: ClassVar[float | None] = 120.0

    servers: dict[str, JsonDict]
    """Configurations by name; `{"type": "sdk", "name": ...}` is an in-process server."""

    def __post_init__(self) -> None:
        check(self)
        for key, config in self.servers.items():
            # Without a name, the CLI drops the server or hangs, and reports nothing.
            if config.get("type") == "sdk" and not _is_name(config.get("name")):
                raise UsageError(
                    f"servers[{key!r}]",
                    "an in-process server without a name",
                    "a configuration with `name`",
                )


def _is_name(given: object) -> bool:
    return isinstance(given, str) and given != ""


class Staging(Part, frozen=True, kw_only=True):
    """The result of a call with a deadline or with files."""

    ok: bool = True
    error_code: str = field(default="", name="error_code")
    detail: str = ""
    outputs: list[JsonDict] = []
    inputs_used: list[Json] = field(default_factory=list[Json], name="inputs_used")
    refusal_limit: bool = field(default=False, name="refusal_limit")
    """Too many calls were refused; the CLI runs no more of them in this conversation."""


class McpCallResult(Answer, frozen=True, kw_only=True):
    """The result of a tool."""

    content: str | list[JsonDict] = ""
    """The text for the model. With `result_not_for_model`, the content blocks of the tool."""
    structured_content: JsonDict | None = None
    meta: JsonDict = field(default_factory=JsonDict, name="_meta")
    staging: Staging = field(default_factory=Staging)
    """Check `staging.ok` after a call with `timeout_ms`: a failure is not refused."""


class McpCall(Verb[McpCallResult], frozen=True, kw_only=True, tag="mcp_call"):
    """Call a tool of an external MCP server, without the model and without a permission request.

    Refused for in-process servers: call the function instead. Also refused if the tool fails; but
    with a deadline or with files, the failure is in the answer's `staging`.
    """

    TIMEOUT: ClassVar[float | None] = CALL_TIME + MARGIN
    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {
        "result_not_for_model": "mcp_call_result_not_for_model_v1",
        "check_permissions": "mcp_call_check_permissions_v1",
    }
    GUARDS: ClassVar[frozenset[str]] = frozenset({"mcp_call_check_permissions_v1"})

    tool: ToolName
    arguments: JsonDict = {}
    timeout_ms: Milliseconds | None = None
    expires_at: str | None = None
    result_not_for_model: bool = False
    """Return content blocks in `content` instead of a text."""
    check_permissions: bool = False
    """Request permission, as if the model had called the tool."""
    input_files: list[dict[str, str]] | None = None
    output_files: list[dict[str, str]] | None = None

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the answer: somewhat longer than the tool may take."""
        return self.TIMEOUT if self.timeout_ms is None else self.timeout_ms / 1000 + MARGIN


class ResourceContents(Part, frozen=True, kw_only=True):
    """One content item of a resource: a text, or bytes in base64."""

    uri: str = ""
    mime_type: str = ""
    text: str | None = None
    blob: str | None = None
    meta: JsonDict = field(default_factory=JsonDict, name="_meta")


class McpResource(Answer, frozen=True, kw_only=True):
    """A resource of an MCP server."""

    contents: list[ResourceContents] = []


class McpReadResource(Verb[McpResource], frozen=True, kw_only=True, tag="mcp_read_resource"):
    """Read a user interface (`ui://...`) that an external MCP server offers."""

    TIMEOUT: ClassVar[float | None] = 120.0
    CAPABILITY: ClassVar[str | None] = "mcp_read_resource_v1"

    server_name: Text = field(name="serverName")
    uri: UiUri


class McpMessage(Verb[Answer], frozen=True, kw_only=True, tag="mcp_message"):
    """Send a notification from an in-process MCP server to the CLI."""

    server_name: str
    message: JsonDict


class OverrideSet(Answer, frozen=True, kw_only=True):
    """The override was stored."""

    warning: str = ""
    """Why the override has no effect yet."""


class SetMcpPermissionModeOverride(
    Verb[OverrideSet], frozen=True, kw_only=True, tag="set_mcp_permission_mode_override"
):
    """Set a permission mode for the tools of one MCP server."""

    server_name: Text = field(name="serverName")
    mode: Literal["default", "auto"] | None
    """`None` removes the override."""
