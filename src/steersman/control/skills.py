"""Verbs about what can be added to a CLI: commands, skills, agents, plugins, output styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, many_objects
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
    """Without the slash."""
    description: str = ""
    argument_hint: str = ""
    aliases: list[str] = []
    builtin: bool = False


class AgentInfo(Part, frozen=True, kw_only=True):
    """A subagent that the model may send."""

    name: str = ""
    description: str = ""
    model: str | None = None
    """`inherit`, an alias, or nothing for the default."""


class PluginInfo(Part, frozen=True, kw_only=True):
    """A plugin that is loaded."""

    name: str = ""
    path: str = ""
    source: str = ""
    version: str = ""
    """What the plugin says of itself."""


class SkillsReloaded(Answer, frozen=True, kw_only=True):
    """The skills that are there now."""

    READERS: ClassVar[Readers] = {"skills": many_objects(CommandInfo)}

    skills: list[CommandInfo] = []


class ReloadSkills(Verb[SkillsReloaded], frozen=True, kw_only=True, tag="reload_skills"):
    """Read the skills' files again."""


class CacheImpact(Part, frozen=True, kw_only=True):
    """What reloading would change in the prompt, so that it would be paid for anew."""

    mcp_servers_added: list[str] = field(default_factory=list[str], name="mcp_servers_added")
    mcp_servers_removed: list[str] = field(default_factory=list[str], name="mcp_servers_removed")
    lsp_tool_change: str | None = field(default=None, name="lsp_tool_change")


class PluginsReloaded(Answer, frozen=True, kw_only=True):
    """What there is after the plugins were read again."""

    READERS: ClassVar[Readers] = {
        "commands": many_objects(CommandInfo),
        "agents": many_objects(AgentInfo),
        "plugins": many_objects(PluginInfo),
        "mcp_servers": many_objects(McpServerStatus),
    }

    commands: list[CommandInfo] = []
    agents: list[AgentInfo] = []
    plugins: list[PluginInfo] = []
    mcp_servers: list[McpServerStatus] = []
    error_count: int = field(default=0, name="error_count")
    held: bool = False
    """Nothing was changed: it would have had a `cache_impact`."""
    cache_impact: CacheImpact = field(default_factory=CacheImpact, name="cache_impact")


class ReloadPlugins(Verb[PluginsReloaded], frozen=True, kw_only=True, tag="reload_plugins"):
    """Read the plugins again."""

    TIMEOUT: ClassVar[float | None] = 120.0
    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {
        "refuse_if_busy": "reload_plugins_refuse_if_busy_v1"
    }

    hold_on_cache_impact: bool = False
    """Change nothing that would make the prompt be paid for anew."""
    add_plugins: list[dict[str, Any]] | None = None
    refuse_if_busy: bool = False
    """Be refused while a turn runs."""


class OutputStyles(Answer, frozen=True, kw_only=True):
    """The output styles that are there now."""

    available_output_styles: list[str] = field(
        default_factory=list[str], name="available_output_styles"
    )


class ReloadOutputStyles(Verb[OutputStyles], frozen=True, kw_only=True, tag="reload_output_styles"):
    """Read the output styles' files again."""
