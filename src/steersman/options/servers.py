"""Servers that run in this process: those of the `mcp` package, and the form of the official SDKs.

The package is not imported, because it need not be installed; its servers have attributes of their
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from steersman._json import is_mapping, is_sequence
from steersman.errors import Described, UsageError

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


@dataclass(frozen=True, slots=True)
class SdkServer:
    """The tools of a server of type `sdk`: functions, or what `@tool` returns."""

    name: str
    tools: tuple[Any, ...]
    version: str


_SDK_FIELDS = ("type", "name", "version", "instance", "tools")
_SDK_FORM = '{"type": "sdk", "name": ...} with "instance", a server, or "tools", a list'


def read_server(place: str, given: object) -> object:
    """Return the server in a mapping of type `sdk`, as the official SDKs have; others unchanged."""
    if not is_mapping(given) or given.get("type") != "sdk":
        return given
    for field in given:
        if field not in _SDK_FIELDS:
            raise UsageError(f"{place}[{field!r}]", Described("another field"), _SDK_FORM)
    if ("instance" in given) is ("tools" in given):
        raise UsageError(place, Described(f"a mapping with {', '.join(given)}"), _SDK_FORM)
    if "instance" in given:
        return _checked(f"{place}['instance']", given["instance"])
    tools, name = given["tools"], _text(place, given, "name")
    if not is_sequence(tools):
        allowed = "a list of functions, or of what @tool returns"
        raise UsageError(f"{place}['tools']", Described.kind_of(tools), allowed)
    version = _text(place, given, "version") if "version" in given else "1.0.0"
    return SdkServer(name, tuple(tools), version)


def _checked(place: str, given: object) -> object:
    if is_mapping(given) or not is_server(given):
        allowed = "a Toolbox or another ToolServer, or a server of the mcp package"
        raise UsageError(place, Described.kind_of(given), allowed)
    return given


def _text(place: str, given: Mapping[str, Any], field: str) -> str:
    found = given.get(field)
    if not isinstance(found, str) or not found:
        raise UsageError(f"{place}[{field!r}]", found, "a string that is not empty")
    return found


def is_server(given: object) -> bool:
    """Whether `given` serves tools in this process."""
    is_tool_server = isinstance(given, SdkServer) or callable(getattr(given, "handle", None))
    return is_tool_server or lowlevel_server(given) is not None
