"""What the CLI lists when a turn opens, against what it was given. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steersman import _json
from steersman._tool_names import LISTED_AS, RENAMED
from steersman.messages.system import Init
from steersman.options import Options

ADDED = frozenset(
    {
        "StructuredOutput",
        *("ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool"),
        *("RefreshMcpTools", "WaitForMcpServers"),
    }
)
"""Tools that the CLI adds to `tools` for other options: a schema of the output, MCP servers."""


class Difference(NamedTuple):
    """A setting that the CLI reports otherwise than it was given."""

    setting: str
    given: str
    reported: str


def differences(
    init: Init, options: Options, own_servers: Iterable[str], *, are_set: bool
) -> list[Difference]:
    """Return what the CLI offers although it was not given.

    `own_servers` are the keys of the in-process MCP servers. `are_set` is true once the session has
    changed the MCP servers of the running CLI.
    """
    found = list[Difference]()
    tools = _available(options)
    if tools is not None:
        known = {*tools, *(LISTED_AS.get(each, each) for each in tools), *ADDED}
        offered = (each for each in init.tools if not each.startswith("mcp__"))
        found += _beyond("tools", tools, known, offered)
    if options.strict_mcp_config and not are_set and _json.is_mapping(options.mcp_servers):
        given = (*options.mcp_servers, *own_servers, *_servers_of_agents(options))
        named = (str(each.get("name", "")) for each in init.mcp_servers)
        # Those of a plugin are named `plugin:<plugin>:<server>`.
        may_have = bool(options.plugins or options.sources)
        strange = (each for each in named if not (may_have and each.startswith("plugin:")))
        found += _beyond("mcp_servers", given, set(given), strange)
    return found


def forbidden_tools(tools: Iterable[str], options: Options) -> list[str]:
    """Return the tools that the CLI offers although the options forbid them."""
    policy = options.policy
    rules = (*options.disallowed_tools, *(() if policy is None else policy.forbid))
    names = {rule for rule in rules if "(" not in rule}
    names |= {listed for name, listed in RENAMED.items() if name in names}
    return [tool for tool in tools if tool in names]


def _available(options: Options) -> tuple[str, ...] | None:
    """Return the built-in tools that were given; None if all of them may exist."""
    if options.policy is not None and options.policy.available is not None:
        return tuple(options.policy.available)
    tools = options.tools
    return tools if isinstance(tools, tuple) and "default" not in tools else None


def _beyond(
    setting: str, given: Iterable[str], known: set[str], offered: Iterable[str]
) -> list[Difference]:
    strange = [each for each in offered if each not in known]
    return [Difference(setting, ", ".join(given) or "none", ", ".join(strange))] if strange else []


def _servers_of_agents(options: Options) -> Iterable[str]:
    """Yield the names of the MCP servers that only subagents have."""
    for agent in options.agents.values():
        if _json.is_mapping(agent):
            servers = agent.get("mcpServers")
        else:
            servers = getattr(agent, "mcp_servers", None)
        for each in servers or ():
            yield from ((each,) if isinstance(each, str) else each)
