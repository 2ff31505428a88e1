"""Which tools of a remote server are shown, and under what names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from steersman._json import is_mapping
from steersman.errors import McpNotReady, UsageError
from steersman.ports import JsonObject

__all__ = ["ExposedTools", "ToolFilter", "show"]


class ToolFilter:
    """What the program said about names, checked."""

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
        self.wanted: tuple[str, ...] = ()
        """The remote's names of the tools that must be there."""
        if callable(tools):
            self._keeps = tools
        elif tools is not None:
            self.wanted = tuple(tools)
            self._keeps = self.wanted.__contains__
        self._rename: Callable[[str], str] = str
        if callable(rename):
            self._rename = rename
        elif rename is not None:
            renamed = dict(rename)
            self._rename = lambda name: renamed.get(name, name)

    @property
    def promised(self) -> tuple[str, ...]:
        """The names that are known before anything is connected."""
        return tuple(map(self._rename, self.wanted))

    def shown(self, name: str) -> str | None:
        """What a tool is called here; `None` if it is not shown."""
        return self._rename(name) if self._keeps(name) else None


@dataclass(frozen=True, slots=True)
class ExposedTools:
    """The tools as the CLI sees them."""

    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """As they are listed, by the name that they are shown under."""
    remote_names: Mapping[str, str] = field(default_factory=dict[str, str])


def show(listed: Collection[JsonObject], names: ToolFilter, server: str) -> ExposedTools:
    """The tools to show. Raises `McpNotReady` if one is missing, `UsageError` if two clash."""
    there = [str(each.get("name", "")) for each in listed]
    missing = [name for name in names.wanted if name not in there]
    if missing:
        raise McpNotReady(server, "failed", f"it has no tool {missing[0]!r}, but {there}")
    tools: dict[str, JsonObject] = {}
    remote_names: dict[str, str] = {}
    for remote_name, tool in zip(there, listed, strict=True):
        name = names.shown(remote_name)
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
        return all(isinstance(each, str) for each in cast("Collection[Any]", given))
    except TypeError:
        return False


def _is_renaming(given: object) -> bool:
    return is_mapping(given) and all(
        isinstance(each, str) for pair in given.items() for each in pair
    )
