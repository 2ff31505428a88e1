"""An MCP server in a process of its own, written with `mcp`. Run by `tests/live/test_verbs.py`."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("outside", version="1.2")


@server.tool()
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@server.resource("ui://outside/panel", mime_type="text/html")
def panel() -> str:
    """A panel."""
    return "<p>panel</p>"


if __name__ == "__main__":
    server.run()
