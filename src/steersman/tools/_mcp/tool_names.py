"""Which tools of a remote MCP server are exposed to the CLI, and under what names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from steersman._arguments import check_callback
from steersman._json import is_mapping
from steersman.errors import McpNotReady, UsageError
from steersman.ports import JsonObject


class ToolFilter:
    """The arguments `tools` and `rename` of a `RemoteTools`, checked."""

    def __init__(
        self,
        tools: Collection[str] | Callable[[str], bool] | None,
        rename: Mapping[str, str] | Callable[[str], str] | None,
    ) -> None:
        if isinstance(tools, str) or not (tools is None or callable(tools) or _are_names(tools)):
            raise UsageError("tools", tools, "names, a function of a name, or None")
        if not (rename is None or callable(rename) or _is_renaming(rename)):
            raise UsageError("rename", rename, "names by name, a function of a name, or None")
        self._keeps: Callable[[str], bool] = lambda _: True
        self.required: tuple[str, ...] = ()
        """The tools that the server must have, by the server's names."""
        if callable(tools):
            check_callback("tools", tools, "a name")
            self._keeps = tools
        elif tools is not None:
            self.required = tuple(tools)
            self._keeps = self.required.__contains__
        self._rename: Callable[[str], str] = str
        if callable(rename):
            check_callback("rename", rename, "a name")
            self._rename = rename
        elif rename is not None:
            renamed = dict(rename)
            self._rename = lambda name: renamed.get(name, name)

    @property
    def names_before_connecting(self) -> tuple[str, ...]:
        """The exposed names of the required tools."""
        return tuple(map(self._rename, self.required))

    def exposed_name(self, name: str) -> str | None:
        """Return the name under which a tool of the server is exposed; `None` if it is not."""
        return self._rename(name) if self._keeps(name) else None


@dataclass(frozen=True, slots=True)
class ExposedTools:
    """The tools as the CLI sees them."""

    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The entries of `tools/list`, by exposed name."""
    remote_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's names, by exposed name."""


def expose(listed: Collection[JsonObject], names: ToolFilter, server: str) -> ExposedTools:
    """Filter and rename the tools that a server listed.

    Raises `McpNotReady` if a required one is missing, `UsageError` if two get the same name.
    """
    there = [str(each.get("name", "")) for each in listed]
    missing = [name for name in names.required if name not in there]
    if missing:
        raise McpNotReady(server, "failed", f"it has no tool {missing[0]!r}, but {there}")
    tools: dict[str, JsonObject] = {}
    remote_names: dict[str, str] = {}
    for remote_name, tool in zip(there, listed, strict=True):
        name = names.exposed_name(remote_name)
        if name is None:
            continue
        if name in tools:
            both = f"{remote_names[name]!r} and {remote_name!r}"
            raise UsageError("rename", name, "one tool of each name", hint=f"{both} share it")
        tools[name] = {**tool, "name": name}
        remote_names[name] = remote_name
    return ExposedTools(tools, remote_names)


def _are_names(given: object) -> bool:
    try:
        return all(isinstance(each, str) for each in cast("Collection[object]", given))
    except TypeError:
        return False


def _is_renaming(given: object) -> bool:
    return is_mapping(given) and all(
        isinstance(each, str) for pair in given.items() for each in pair
    )
