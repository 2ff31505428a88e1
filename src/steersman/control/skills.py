"""Verbs about commands, skills, agents, plugins and output styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from steersman._json import JsonDict
from steersman.control.mcp import McpServerStatus
from steersman.control.verbs import Answer, Part, Verb

__all__ = [
    "AgentInfo",
    "CacheImpact",
    "CommandInfo",
    "OutputStyles",
    "PluginInfo",
    "PluginsReloaded",
    "ReloadOutputStyles",
    "ReloadPlugins",
    "ReloadSkills",
    "SkillsReloaded",
]


class CommandInfo(Part, frozen=True, kw_only=True):
    """A slash command or a skill."""

    name: str = ""
    """The name without the slash."""
    description: str = ""
    argument_hint: str = ""
    aliases: list[str] = []
    builtin: bool = False


class AgentInfo(Part, frozen=True, kw_only=True):
    """A subagent that the model may start."""

    name: str = ""
    description: str = ""
    model: str | None = None
    """`inherit`, an alias, or None for the default."""


class PluginInfo(Part, frozen=True, kw_only=True):
    """A loaded plugin."""

    name: str = ""
    path: str = ""
    source: str = ""
    version: str = ""
    """The version in the plugin's manifest."""


class SkillsReloaded(Answer, frozen=True, kw_only=True):
    """The skills after the reload."""

    skills: list[CommandInfo] = []


class ReloadSkills(Verb[SkillsReloaded], frozen=True, kw_only=True, tag="reload_skills"):
    """Read the files of the skills again."""


class CacheImpact(Part, frozen=True, kw_only=True):
    """Changes that would invalidate the prompt cache, so that the prompt would be billed again."""

    mcp_servers_added: list[str] = field(default_factory=list[str], name="mcp_servers_added")
    mcp_servers_removed: list[str] = field(default_factory=list[str], name="mcp_servers_removed")
    lsp_tool_change: str | None = field(default=None, name="lsp_tool_change")


class PluginsReloaded(Answer, frozen=True, kw_only=True):
    """Commands, agents, plugins and MCP servers after the reload."""

    commands: list[CommandInfo] = []
    agents: list[AgentInfo] = []
    plugins: list[PluginInfo] = []
    mcp_servers: list[McpServerStatus] = []
    error_count: int = field(default=0, name="error_count")
    held: bool = False
    """Nothing was reloaded, because that would have had a `cache_impact`."""
    cache_impact: CacheImpact = field(default_factory=CacheImpact, name="cache_impact")


class ReloadPlugins(Verb[PluginsReloaded], frozen=True, kw_only=True, tag="reload_plugins"):
    """Read the plugins again."""

    TIMEOUT: ClassVar[float | None] = 120.0
    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {
        "refuse_if_busy": "reload_plugins_refuse_if_busy_v1"
    }

    hold_on_cache_impact: bool = False
    """Do not reload if that would invalidate the prompt cache."""
    add_plugins: list[JsonDict] | None = None
    refuse_if_busy: bool = False
    """Refuse the request while a turn runs."""


class OutputStyles(Answer, frozen=True, kw_only=True):
    """The output styles after the reload."""

    available_output_styles: list[str] = field(
        default_factory=list[str], name="available_output_styles"
    )


class ReloadOutputStyles(Verb[OutputStyles], frozen=True, kw_only=True, tag="reload_output_styles"):
    """Read the files of the output styles again."""
