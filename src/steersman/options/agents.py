"""`AgentDefinition`: a subagent that a session may start, described in Python.

A definition is checked when it is made. `written()` returns the form that the CLI reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from steersman._json import JsonDict, JsonObject, is_mapping
from steersman.errors import Described, UsageError
from steersman.options import checks
from steersman.options.checks import Effort

AgentEffort = Effort | int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """What a subagent is for, its system prompt, and what it may use.

    A field that is `None` is not sent: the CLI then uses the value of the session.
    """

    description: str
    """When to use this agent; the model reads it to decide."""
    prompt: str = field(repr=False)
    """The agent's system prompt."""
    tools: tuple[str, ...] | None = None
    """The tools that the agent has; `None` is the tools of the session."""
    disallowed_tools: tuple[str, ...] | None = None
    """Tools that the agent does not have, although the session has them."""
    model: str | None = None
    """The model's alias or full name, or `inherit` for the model of the session."""
    skills: tuple[str, ...] | None = None
    """Skills that are loaded before the agent starts."""
    mcp_servers: tuple[str | JsonObject, ...] | None = field(default=None, repr=False)
    """MCP servers for the agent: keys of the session's servers, or `{name: configuration}`."""
    max_turns: int | None = None
    """Stop the agent after this many round trips to the model."""
    background: bool | None = None
    """Whether the session continues while the agent works."""
    effort: AgentEffort | None = None
    """How much effort the model makes: a level, or a whole number."""
    permission_mode: str | None = None
    """The permission mode in which the agent runs."""
    memory: Literal["user", "project", "local"] | None = None
    """The scope of the memory in which the agent keeps what it learns."""
    initial_prompt: str | None = None
    """The first prompt, if this agent runs as the main one; see the option `agent`."""
    auto_compact_window: int | None = None
    """The number of tokens at which the agent's conversation is compacted."""
    omit_claude_md: bool | None = None
    """Whether the agent runs without the instructions of `CLAUDE.md` files."""
    critical_system_reminder: str | None = None
    """A reminder that the CLI repeats to the agent. Experimental in the CLI."""
    observer: str | None = None
    """The name of the agent that observes this one."""
    observer_message: str | None = None
    """Sent to the CLI as `observerMessage`."""

    def __post_init__(self) -> None:
        for name in ("tools", "disallowed_tools", "skills", "mcp_servers"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.as_tuple(name, getattr(self, name)))
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))

    def written(self, place: str = "agent") -> JsonDict:
        """Return the definition in the CLI's form, without the fields that are `None`.

        Raises `UsageError`, with the field's name after `place`, for a value that is not JSON.
        """
        given = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            wire_name(name): checks.plain(f"{place}.{name}", value)
            for name, value in given.items()
            if value is not None
        }


def agent_of(place: str, given: object) -> AgentDefinition:
    """Return the definition that `given` is or describes.

    The keys of a mapping may be the names of the fields, or the CLI's names for them. Raises
    `UsageError` with the field's name after `place`.
    """
    if isinstance(given, AgentDefinition):
        return given
    fields: JsonDict = {}
    for key, value in checks.as_mapping(place, given).items():
        name = _NAMES.get(key)
        if name is None:
            raise UsageError(
                f"{place} key", key, ", ".join(_FIELDS), hint=checks.did_you_mean(key, list(_NAMES))
            )
        fields[name] = value
    for name in ("description", "prompt"):
        if name not in fields:
            raise UsageError(
                place, Described(f"no {name}"), "a mapping with a description and a prompt"
            )
    try:
        return AgentDefinition(**fields)
    except UsageError as error:
        raise UsageError(
            f"{place}.{error.argument}", error.given, error.allowed, hint=error.hint
        ) from None


def wire_name(name: str) -> str:
    """Return the CLI's name of a field."""
    if name == "critical_system_reminder":
        return "criticalSystemReminder_EXPERIMENTAL"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_SERVER_OR_NAME = checks.must_be(
    "a server's name, or {name: configuration}",
    lambda given: (
        given != "" and (isinstance(given, str) or (is_mapping(given) and len(given) > 0))
    ),
    private=True,
)

_CHECKS: Mapping[str, checks.Check] = {
    "description": checks.non_empty,
    "prompt": checks.text,
    "tools": checks.each(checks.rule),
    "disallowed_tools": checks.each(checks.rule),
    "model": checks.optional(checks.word),
    "skills": checks.each(checks.skill_name),
    "mcp_servers": checks.each(_SERVER_OR_NAME),
    "max_turns": checks.optional(checks.count),
    "background": checks.optional(checks.flag),
    "effort": checks.optional(checks.effort_or_number),
    "permission_mode": checks.optional(checks.permission_mode),
    "memory": checks.optional(checks.one_of("user", "project", "local")),
    "initial_prompt": checks.optional(checks.text),
    "auto_compact_window": checks.optional(checks.count),
    "omit_claude_md": checks.optional(checks.flag),
    "critical_system_reminder": checks.optional(checks.text),
    "observer": checks.optional(checks.word),
    "observer_message": checks.optional(checks.text),
}

_FIELDS = tuple(each.name for each in dataclasses.fields(AgentDefinition))
_NAMES: Mapping[str, str] = {
    **{name: name for name in _FIELDS},
    **{wire_name(name): name for name in _FIELDS},
}
