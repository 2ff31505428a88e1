"""Tools about MCP servers, and about tools."""

from __future__ import annotations

from steersman._json import Json
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "ListMcpResourcesInput",
    "ListMcpResourcesOutput",
    "McpResource",
    "McpResourceContent",
    "ReadMcpResourceDirInput",
    "ReadMcpResourceDirOutput",
    "ReadMcpResourceInput",
    "ReadMcpResourceOutput",
    "RefreshMcpToolsInput",
    "RefreshMcpToolsOutput",
    "RefreshedMcpServer",
    "ToolSearchInput",
    "WaitForMcpServersInput",
]


class McpResource(Part, frozen=True, kw_only=True, rename="camel"):
    """A resource that an MCP server offers."""

    uri: str = ""
    name: str = ""
    server: str = ""
    mime_type: str | None = None
    description: str | None = None


class ListMcpResourcesInput(ToolInput, frozen=True, kw_only=True):
    """`ListMcpResourcesTool`: list the resources of MCP servers."""

    server: str | None = None


class ListMcpResourcesOutput(ToolOutput, frozen=True, kw_only=True):
    """The resources. On the wire this output is a list, not an object."""

    resources: list[McpResource] = []


class ReadMcpResourceInput(ToolInput, frozen=True, kw_only=True):
    """`ReadMcpResourceTool`: read a resource."""

    server: str = ""
    uri: str = ""


class McpResourceContent(Part, frozen=True, kw_only=True, rename="camel"):
    """One content item of a resource."""

    uri: str = ""
    mime_type: str | None = None
    text: str | None = None


class ReadMcpResourceOutput(ToolOutput, frozen=True, kw_only=True):
    """The contents of the resource."""

    contents: list[McpResourceContent] | None = None
    error: Json = None


class ReadMcpResourceDirInput(ToolInput, frozen=True, kw_only=True):
    """`ReadMcpResourceDirTool`: list the resources below another one."""

    server: str = ""
    uri: str = ""


class ReadMcpResourceDirOutput(ToolOutput, frozen=True, kw_only=True):
    """The resources below the given one."""

    resources: list[McpResource] | None = None
    error: Json = None


class RefreshMcpToolsInput(ToolInput, frozen=True, kw_only=True):
    """`RefreshMcpTools`: request the tool lists of MCP servers again."""

    server: str | None = None


class RefreshedMcpServer(Part, frozen=True, kw_only=True, rename="camel"):
    """An MCP server, and the result of the refresh."""

    server: str = ""
    status: str = ""
    tool_count: int | None = None
    error: str | None = None


class RefreshMcpToolsOutput(ToolOutput, frozen=True, kw_only=True):
    """The servers. On the wire this output is a list, not an object."""

    servers: list[RefreshedMcpServer] = []


class WaitForMcpServersInput(ToolInput, frozen=True, kw_only=True):
    """`WaitForMcpServers`: wait for MCP servers to connect. `raw` has the undeclared fields."""


class ToolSearchInput(ToolInput, frozen=True, kw_only=True):
    """`ToolSearch`: load the schemas of deferred tools."""

    query: str = ""
    max_results: float = 0
