"""`McpControls` for synchronous code."""

from __future__ import annotations

from collections.abc import Mapping

from steersman._portal.portal import Portal
from steersman.agent import McpControls as AsyncMcpControls
from steersman.control.mcp import McpServers, McpServersSet


class McpControls:
    """Implements the methods of `Session` about MCP servers."""

    def __init__(self, controls: AsyncMcpControls, portal: Portal) -> None:
        self._controls = controls
        self._portal = portal

    def status(self) -> McpServers:
        """Return the current status of all MCP servers."""
        return self._portal.call(self._controls.status)

    def reconnect(self, name: str) -> None:
        """Make the CLI reconnect to one of its MCP servers."""
        self._portal.call(self._controls.reconnect, name)

    def toggle(self, name: str, *, enabled: bool) -> None:
        """Enable or disable an MCP server."""
        self._portal.call(self._controls.toggle, name, enabled=enabled)

    def set_servers(self, servers: Mapping[str, object]) -> McpServersSet:
        """Replace the external servers that were added before; add or replace in-process ones.

        In-process servers that are not named stay; `None` removes one.
        """
        return self._portal.call(self._controls.set_servers, servers)
