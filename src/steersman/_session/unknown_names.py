"""Names in the options that the CLI does not know: their rules and hooks never apply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from steersman._json import is_mapping
from steersman._tool_names import BUILT_IN, MAIN_AGENT
from steersman.hooks.matchers import names_in
from steersman.messages.system import Init
from steersman.options import Options


def unknown_names(init: Init, options: Options) -> list[str]:
    """Return a text for each name in `options` that is not in the CLI's lists, in order.

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
    if is_mapping(options.mcp_servers):
        names += options.mcp_servers
    yield from (re.sub(r"[^A-Za-z0-9_-]", "_", name).partition("__")[0] for name in names)
    yield from map(_server_of, init.tools)
    if options.functions:
        yield "functions"


def _tools(options: Options) -> Iterator[tuple[str, str]]:
    rules = {"disallowed_tools": options.disallowed_tools, "allowed_tools": options.allowed_tools}
    for option, given in rules.items():
        yield from ((option, rule.partition("(")[0]) for rule in given)
    if options.tools is not None and not is_mapping(options.tools):
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
