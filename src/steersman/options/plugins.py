"""`Plugin`: a directory with commands, agents, skills and hooks.

Checks how plugins are given. `steersman.skills` checks that the directories exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steersman._json import JsonObject, is_mapping
from steersman.errors import UsageError
from steersman.options import checks


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin: a directory on the machine where the CLI runs."""

    path: str | Path
    skip_mcp_discovery: bool = False
    """Whether the plugin's own MCP servers are ignored."""

    def __post_init__(self) -> None:
        checks.path("path", self.path)
        checks.flag("skip_mcp_discovery", self.skip_mcp_discovery)


PluginLike = Plugin | str | Path | JsonObject


def plugin_of(place: str, given: object) -> Plugin:
    """Return the plugin that `given` is or describes.

    `given` is a `Plugin`, a path, or a mapping in the official SDKs' form `{"type": "local", ...}`.
    """
    if isinstance(given, Plugin):
        return given
    if is_mapping(given):
        return _from_mapping(place, given)
    checks.path(place, given)
    return Plugin(given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def _from_mapping(place: str, given: JsonObject) -> Plugin:
    kind = given.get("type", "local")
    if kind != "local" or "path" not in given:
        raise UsageError(place, dict(given), '{"type": "local", "path": ...}')
    skips = given.get("skip_mcp_discovery", given.get("skipMcpDiscovery", False))
    try:
        return Plugin(given["path"], skips)
    except UsageError as error:
        raise UsageError(f"{place}.{error.argument}", error.given, error.allowed) from None
