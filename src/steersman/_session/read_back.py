"""What the CLI lists when a turn opens, against what it was given. Pure.

What it offers although it was not given ends the session. Names in the options that the CLI does
not know are reported: their rules and hooks never apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from steersman import _json
from steersman._tool_names import BUILT_IN, LISTED_AS, MAIN_AGENT, RENAMED
from steersman.hooks.matchers import names_in
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
    """Return the settings in which the CLI offers more than it was given.

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


def unknown_names(init: Init, options: Options) -> list[str]:
    """Return a sentence for each name in `options` that is not in the CLI's lists, in order.

    Tools that are built in count as known: the CLI does not list tools that a rule removes. Tools
    of a known MCP server count as known, because the server may connect later.
    """
    tools = list(_tools(options))
    named = [(option, _server_of(name)) for option, name in tools]
    found = [
        *_not_in(lambda: {*init.tools, *BUILT_IN}, tools, "tool"),
        *_not_in(lambda: {"", *_servers(init, options)}, named, "MCP server"),
        *_not_in(lambda: {*init.agents, *options.agents}, [*_agents(options)], "agent"),
        *_not_in(lambda: {*init.skills, *init.slash_commands}, [*_skills(options)], "skill"),
    ]
    return list(dict.fromkeys(found))


def _not_in(
    known_names: Callable[[], set[str]], names: Sequence[tuple[str, str]], what: str
) -> Iterator[str]:
    # Most sessions name nothing, and the CLI knows many names.
    known = known_names() if names else set[str]()
    for option, name in names:
        if name not in known and not name.startswith("mcp__") and "*" not in name:
            yield f"{option}: the CLI has no {what} named {name!r}"


def _server_of(tool: str) -> str:
    """Return the MCP server in the name of a tool, or in a rule; empty if there is none."""
    return tool[5:].partition("__")[0] if tool.startswith("mcp__") else ""


def _servers(init: Init, options: Options) -> Iterator[str]:
    """Yield the MCP servers as they are written in the names of their tools."""
    names = [str(each.get("name", "")) for each in init.mcp_servers]
    if _json.is_mapping(options.mcp_servers):
        names += options.mcp_servers
    yield from (re.sub(r"[^A-Za-z0-9_-]", "_", name).partition("__")[0] for name in names)
    yield from map(_server_of, init.tools)
    if options.functions:
        yield "functions"


def _tools(options: Options) -> Iterator[tuple[str, str]]:
    rules = {"disallowed_tools": options.disallowed_tools, "allowed_tools": options.allowed_tools}
    for option, given in rules.items():
        yield from ((option, rule.partition("(")[0]) for rule in given)
    if options.tools is not None and not _json.is_mapping(options.tools):
        yield from (("tools", str(name)) for name in options.tools)
    for hook in options.hooks:
        if hook.event.MATCHED == "tool_name":
            yield from (("hooks", name) for name in names_in(hook.matcher))
    if options.policy is not None:
        yield from (("policy", each.rule.tool) for each in options.policy.rules)
        policy = options.policy
        lists = (*policy.forbid, *policy.auto_approve, *policy.repeatable)
        yield from (("policy", rule.partition("(")[0]) for rule in lists)


def _agents(options: Options) -> Iterator[tuple[str, str]]:
    if options.agent is not None:
        yield "agent", options.agent
    if options.policy is not None:
        for rule in options.policy.rules:
            yield from (("policy", name) for name in rule.agents or () if name != MAIN_AGENT)


def _skills(options: Options) -> Iterator[tuple[str, str]]:
    if options.skills not in (None, "all"):
        yield from (("skills", name) for name in options.skills or ())
