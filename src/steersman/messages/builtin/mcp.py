"""Tools that look at tool servers, and at tools themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman._struct import Readers, many
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
    """Something that a tool server offers to be read."""

    uri: str = ""
    name: str = ""
    server: str = ""
    mime_type: str | None = None
    description: str | None = None


class ListMcpResourcesInput(ToolInput, frozen=True, kw_only=True):
    """`ListMcpResourcesTool`: see what servers offer."""

    server: str | None = None


class ListMcpResourcesOutput(ToolOutput, frozen=True, kw_only=True):
    """What servers offer; the tool gives the bare list."""

    READERS: ClassVar[Readers] = {"resources": many(McpResource)}

    resources: list[McpResource] = []


class ReadMcpResourceInput(ToolInput, frozen=True, kw_only=True):
    """`ReadMcpResourceTool`: read something that a server offers."""

    server: str = ""
    uri: str = ""


class McpResourceContent(Part, frozen=True, kw_only=True, rename="camel"):
    """A piece of what was read."""

    uri: str = ""
    mime_type: str | None = None
    text: str | None = None


class ReadMcpResourceOutput(ToolOutput, frozen=True, kw_only=True):
    """What was read."""

    READERS: ClassVar[Readers] = {"contents": many(McpResourceContent)}

    contents: list[McpResourceContent] | None = None
    error: Any = None


class ReadMcpResourceDirInput(ToolInput, frozen=True, kw_only=True):
    """`ReadMcpResourceDirTool`: see what stands below something that a server offers."""

    server: str = ""
    uri: str = ""


class ReadMcpResourceDirOutput(ToolOutput, frozen=True, kw_only=True):
    """What stands below it."""

    READERS: ClassVar[Readers] = {"resources": many(McpResource)}

    resources: list[McpResource] | None = None
    error: Any = None


class RefreshMcpToolsInput(ToolInput, frozen=True, kw_only=True):
    """`RefreshMcpTools`: ask servers again which tools they have."""

    server: str | None = None


class RefreshedMcpServer(Part, frozen=True, kw_only=True, rename="camel"):
    """A server that was asked, and what came of it."""

    server: str = ""
    status: str = ""
    tool_count: int | None = None
    error: str | None = None


class RefreshMcpToolsOutput(ToolOutput, frozen=True, kw_only=True):
    """The servers that were asked; the tool gives the bare list."""

    READERS: ClassVar[Readers] = {"servers": many(RefreshedMcpServer)}

    servers: list[RefreshedMcpServer] = []


class WaitForMcpServersInput(ToolInput, frozen=True, kw_only=True):
    """`WaitForMcpServers`: wait until they are up. Known by name only; `raw` has the rest."""


class ToolSearchInput(ToolInput, frozen=True, kw_only=True):
    """`ToolSearch`: get the schemas of tools that are only named so far."""

    query: str = ""
    max_results: float = 0
