"""What a tool server may be, told by its shape, so that the `mcp` package need not be there."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["McpServer", "lowlevel_server"]

INNER = ("_mcp_server", "_lowlevel_server")
"""Where FastMCP, MCPServer and their kin keep the low-level server that they dress up."""


class McpServer(Protocol):
    """A `Server`, `FastMCP` or `MCPServer` of the `mcp` package, 1.x or 2.x."""

    @property
    def name(self) -> str:
        """What it calls itself."""
        ...

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Serve; we do so over streams of our own."""
        ...


def lowlevel_server(given: object) -> Any | None:
    """The low-level server that `given` is or holds; `None` if it is no server of the package."""
    for each in (given, *(getattr(given, name, None) for name in INNER)):
        if callable(getattr(each, "create_initialization_options", None)):
            return each
    return None
