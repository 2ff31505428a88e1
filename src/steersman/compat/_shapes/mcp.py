"""MCP servers: what is configured, and what the CLI reports."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

__all__ = [
    "McpClaudeAIProxyServerConfig",
    "McpHttpServerConfig",
    "McpSSEServerConfig",
    "McpSdkServerConfig",
    "McpSdkServerConfigStatus",
    "McpServerConfig",
    "McpServerConnectionStatus",
    "McpServerInfo",
    "McpServerStatus",
    "McpServerStatusConfig",
    "McpStatusResponse",
    "McpStdioServerConfig",
    "McpToolAnnotations",
    "McpToolInfo",
]


class McpStdioServerConfig(TypedDict):
    """An MCP server that the CLI starts as a program."""

    type: NotRequired[Literal["stdio"]]
    command: str
    args: NotRequired[list[str]]
    env: NotRequired[dict[str, str]]


class McpSSEServerConfig(TypedDict):
    """An MCP server at a URL, with server-sent events."""

    type: Literal["sse"]
    url: str
    headers: NotRequired[dict[str, str]]


class McpHttpServerConfig(TypedDict):
    """An MCP server at a URL, with streamable HTTP."""

    type: Literal["http"]
    url: str
    headers: NotRequired[dict[str, str]]


class McpSdkServerConfig(TypedDict):
    """An MCP server in this process, from `create_sdk_mcp_server`."""

    type: Literal["sdk"]
    name: str
    # A `Toolbox`, or a server made with `mcp`.
    instance: Any


McpServerConfig: TypeAlias = (
    McpStdioServerConfig | McpSSEServerConfig | McpHttpServerConfig | McpSdkServerConfig
)
"""An MCP server that options may name."""


class McpSdkServerConfigStatus(TypedDict):
    """An in-process MCP server as the CLI reports it."""

    type: Literal["sdk"]
    name: str


class McpClaudeAIProxyServerConfig(TypedDict):
    """A connector of claude.ai as the CLI reports it."""

    type: Literal["claudeai-proxy"]
    url: str
    id: str


McpServerStatusConfig: TypeAlias = (
    McpStdioServerConfig
    | McpSSEServerConfig
    | McpHttpServerConfig
    | McpSdkServerConfigStatus
    | McpClaudeAIProxyServerConfig
)
"""The configuration in the status of an MCP server."""


class McpToolAnnotations(TypedDict, total=False):
    """What a tool declares about itself, as the CLI reports it."""

    readOnly: bool
    destructive: bool
    openWorld: bool


class McpToolInfo(TypedDict):
    """A tool of an MCP server."""

    name: str
    description: NotRequired[str]
    annotations: NotRequired[McpToolAnnotations]


class McpServerInfo(TypedDict):
    """Name and version that an MCP server gave."""

    name: str
    version: str


McpServerConnectionStatus: TypeAlias = Literal[
    "connected", "failed", "needs-auth", "pending", "disabled"
]
"""Whether the CLI is connected to an MCP server."""


class McpServerStatus(TypedDict):
    """The status of one MCP server."""

    name: str
    status: McpServerConnectionStatus
    serverInfo: NotRequired[McpServerInfo]
    error: NotRequired[str]
    config: NotRequired[McpServerStatusConfig]
    scope: NotRequired[str]
    tools: NotRequired[list[McpToolInfo]]


class McpStatusResponse(TypedDict):
    """The answer of `ClaudeSDKClient.get_mcp_status`."""

    mcpServers: list[McpServerStatus]
