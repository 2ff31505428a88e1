"""Verbs about tool servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import field

from steersman._struct import Readers, many_objects
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
"""Seconds that the CLI gives a tool when nothing else is said."""
MARGIN = 30.0
TOOL_USE_ID_META = "claudecode/toolUseId"
"""The key in `_meta` of a `tools/call` request that holds the id of the tool use it belongs to."""


class McpServerInfo(Part, frozen=True, kw_only=True):
    """What a tool server calls itself."""

    name: str = ""
    version: str = ""


class McpToolInfo(Part, frozen=True, kw_only=True):
    """A tool of a tool server."""

    name: str = ""
    description: str = ""
    annotations: dict[str, Any] = {}


class McpServerStatus(Part, frozen=True, kw_only=True):
    """How one tool server is."""

    READERS: ClassVar[Readers] = {"tools": many_objects(McpToolInfo)}

    name: str = ""
    status: str = ""
    """`connected`, `pending`, `failed`, `disabled` or `needs-auth`."""
    error: str = ""
    server_info: McpServerInfo = field(default_factory=McpServerInfo)
    config: dict[str, Any] = {}
    transport: str = ""
    scope: str = ""
    source: str = ""
    tools: list[McpToolInfo] = []
    """Empty until it is connected."""


class McpServers(Answer, frozen=True, kw_only=True):
    """How the tool servers are."""

    READERS: ClassVar[Readers] = {"servers": many_objects(McpServerStatus)}

    servers: list[McpServerStatus] = field(default_factory=list[McpServerStatus], name="mcpServers")


class McpStatus(Verb[McpServers], frozen=True, kw_only=True, tag="mcp_status"):
    """Ask how the tool servers are."""

    live_reply: bool = field(default=False, name="liveReply")


class McpReconnect(Verb[Answer], frozen=True, kw_only=True, tag="mcp_reconnect"):
    """Connect to a tool server again; refused for servers in this process."""

    TIMEOUT: ClassVar[float | None] = 120.0

    server_name: Text = field(name="serverName")


class McpToggle(Verb[Answer], frozen=True, kw_only=True, tag="mcp_toggle"):
    """Take a tool server out of use, or into use again."""

    TIMEOUT: ClassVar[float | None] = 120.0

    server_name: Text = field(name="serverName")
    enabled: bool


class McpServersSet(Answer, frozen=True, kw_only=True):
    """What changed; a server that could not be connected stands in `added` and in `errors`."""

    added: list[str] = []
    removed: list[str] = []
    errors: dict[str, str] = {}


class McpSetServers(Verb[McpServersSet], frozen=True, kw_only=True, tag="mcp_set_servers"):
    """Replace the tool servers in this process, and those that this verb has added before.

    External servers that were named at the start stay. Servers in this process that are not named
    again are gone.
    """

    TIMEOUT: ClassVar[float | None] = 120.0

    servers: dict[str, dict[str, Any]]
    """Configurations by name; `{"type": "sdk", "name": ...}` is a server in this process."""

    def __post_init__(self) -> None:
        check(self)
        for key, config in self.servers.items():
            # Without it the CLI drops the server, or hangs, in silence.
            if config.get("type") == "sdk" and not _is_name(config.get("name")):
                raise UsageError(
                    f"servers[{key!r}]",
                    "a server in this process without a name",
                    "one with `name`",
                )


def _is_name(given: object) -> bool:
    return isinstance(given, str) and given != ""


class Staging(Part, frozen=True, kw_only=True):
    """How a call with a deadline or with files went."""

    ok: bool = True
    error_code: str = field(default="", name="error_code")
    detail: str = ""
    outputs: list[dict[str, Any]] = []
    inputs_used: list[Any] = field(default_factory=list[Any], name="inputs_used")
    refusal_limit: bool = field(default=False, name="refusal_limit")
    """So many calls were refused that no more will run in this conversation."""


class McpCallResult(Answer, frozen=True, kw_only=True):
    """What a tool gave back."""

    content: str | list[dict[str, Any]] = ""
    """The text that the model would read; blocks, as the tool made them, if it was not for it."""
    structured_content: dict[str, Any] | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any], name="_meta")
    staging: Staging = field(default_factory=Staging)
    """Look at `staging.ok` after a call with `timeout_ms`: it is not refused when it fails."""


class McpCall(Verb[McpCallResult], frozen=True, kw_only=True, tag="mcp_call"):
    """Call a tool of an external server, without the model and without asking anyone.

    Refused for servers in this process: call the function instead. Refused, too, when the tool
    fails; but with a deadline or with files that is told in the answer's `staging`.
    """

    TIMEOUT: ClassVar[float | None] = CALL_TIME + MARGIN
    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {
        "result_not_for_model": "mcp_call_result_not_for_model_v1",
        "check_permissions": "mcp_call_check_permissions_v1",
    }

    tool: ToolName
    arguments: dict[str, Any] = {}
    timeout_ms: Milliseconds | None = None
    expires_at: str | None = None
    result_not_for_model: bool = False
    """Have the blocks in `content`, not a text."""
    check_permissions: bool = False
    """Ask whoever approves tools, as if the model had called."""
    input_files: list[dict[str, str]] | None = None
    output_files: list[dict[str, str]] | None = None

    @property
    def patience(self) -> float | None:
        """A little longer than the tool may take."""
        return self.TIMEOUT if self.timeout_ms is None else self.timeout_ms / 1000 + MARGIN


class ResourceContents(Part, frozen=True, kw_only=True):
    """One piece of a resource: a text, or bytes in base64."""

    uri: str = ""
    mime_type: str = ""
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any], name="_meta")


class McpResource(Answer, frozen=True, kw_only=True):
    """A resource of a tool server."""

    READERS: ClassVar[Readers] = {"contents": many_objects(ResourceContents)}

    contents: list[ResourceContents] = []


class McpReadResource(Verb[McpResource], frozen=True, kw_only=True, tag="mcp_read_resource"):
    """Read a user interface (`ui://...`) that an external tool server offers."""

    TIMEOUT: ClassVar[float | None] = 120.0
    CAPABILITY: ClassVar[str | None] = "mcp_read_resource_v1"

    server_name: Text = field(name="serverName")
    uri: UiUri


class McpMessage(Verb[Answer], frozen=True, kw_only=True, tag="mcp_message"):
    """Pass a notification from a tool server in this process to the CLI."""

    server_name: str
    message: dict[str, Any]


class OverrideSet(Answer, frozen=True, kw_only=True):
    """The override is stored."""

    warning: str = ""
    """Why it has no effect yet."""


class SetMcpPermissionModeOverride(
    Verb[OverrideSet], frozen=True, kw_only=True, tag="set_mcp_permission_mode_override"
):
    """Give the tools of one server a permission mode of their own."""

    server_name: Text = field(name="serverName")
    mode: Literal["default", "auto"] | None
    """`None` takes the override away."""
