"""Servers of the `mcp` package, recognized by their attributes.

The package itself is not imported, because it need not be installed.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["McpServer", "lowlevel_server"]

INNER = ("_mcp_server", "_lowlevel_server")
"""Attributes in which `FastMCP`, `MCPServer` and similar classes keep their low-level server."""


class McpServer(Protocol):
    """A `Server`, `FastMCP` or `MCPServer` of the `mcp` package, 1.x or 2.x."""

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Serve over streams that the caller passes."""
        ...


def lowlevel_server(given: object) -> Any | None:
    """Return the low-level server that `given` is or holds, or `None` if there is none."""
    for each in (given, *(getattr(given, name, None) for name in INNER)):
        if callable(getattr(each, "create_initialization_options", None)):
            return each
    return None
