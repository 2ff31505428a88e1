"""Agents that a session may hand work to, described in Python.

A definition is checked when it is made; `written` is how the CLI reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from steersman._json import is_mapping
from steersman.errors import UsageError
from steersman.options import checks

if TYPE_CHECKING:
    from steersman.ports import JsonObject

__all__ = ["AgentDefinition", "AgentEffort", "agent_of"]

AgentEffort = Literal["low", "medium", "high", "xhigh", "max"] | int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """What an agent is for, what it is told and what it may use.

    What is left `None` comes from the session that starts it.
    """

    description: str
    """When to use it; the model reads this to decide."""
    prompt: str = field(repr=False)
    """Its system prompt."""
    tools: tuple[str, ...] | None = None
    """The tools that it has; `None` is those of the session."""
    disallowed_tools: tuple[str, ...] | None = None
    model: str | None = None
    """An alias, a full name, or `inherit`."""
    skills: tuple[str, ...] | None = None
    """Skills that it has read before it begins."""
    mcp_servers: tuple[str | JsonObject, ...] | None = field(default=None, repr=False)
    """Names of servers of the session, or `{name: configuration}`."""
    max_turns: int | None = None
    background: bool | None = None
    """Whether the session goes on while it works."""
    effort: AgentEffort | None = None
    permission_mode: str | None = None
    memory: Literal["user", "project", "local"] | None = None
    """Where it keeps what it learns."""
    initial_prompt: str | None = None
    """Sent first when it is the session's own agent; see the option `agent`."""
    auto_compact_window: int | None = None
    """Tokens at which its own conversation is compacted."""
    omit_claude_md: bool | None = None
    critical_system_reminder: str | None = None
    """Experimental in the CLI: repeated to it again and again."""
    observer: str | None = None
    """The agent that watches this one."""
    observer_message: str | None = None

    def __post_init__(self) -> None:
        for name in ("tools", "disallowed_tools", "skills", "mcp_servers"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.as_tuple(name, getattr(self, name)))
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))

    def written(self, place: str = "agent") -> dict[str, Any]:
        """The definition as the CLI reads it, without what was left open.

        Raises `UsageError`, with the field's name behind `place`, for what JSON cannot carry.
        """
        given = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            wire_name(name): checks.plain(f"{place}.{name}", value)
            for name, value in given.items()
            if value is not None
        }


def agent_of(place: str, given: AgentDefinition | Mapping[str, Any]) -> AgentDefinition:
    """The definition in `given`, whose fields may be spelled as here or as the CLI does.

    Raises `UsageError` with the field's name behind `place`.
    """
    if isinstance(given, AgentDefinition):
        return given
    checks.mapping(place, given)
    fields: dict[str, Any] = {}
    for key in given:
        name = _NAMES.get(key) if isinstance(key, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if name is None:
            raise UsageError(
                f"{place} key", key, ", ".join(_FIELDS), hint=checks.did_you_mean(key, list(_NAMES))
            )
        fields[name] = given[key]
    for name in ("description", "prompt"):
        if name not in fields:
            raise UsageError(place, f"no {name}", "a description and a prompt, both of them")
    try:
        return AgentDefinition(**fields)
    except UsageError as error:
        raise UsageError(
            f"{place}.{error.argument}", error.given, error.allowed, hint=error.hint
        ) from None


def wire_name(name: str) -> str:
    """The CLI's word for a field."""
    if name == "critical_system_reminder":
        return "criticalSystemReminder_EXPERIMENTAL"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_SERVER_OR_NAME = checks.must_be(
    "a server's name, or a mapping of one name to its configuration",
    lambda given: (
        given != "" and (isinstance(given, str) or (is_mapping(given) and len(given) > 0))
    ),
    private=True,
)

_CHECKS: Mapping[str, checks.Check] = {
    "description": checks.filled,
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
