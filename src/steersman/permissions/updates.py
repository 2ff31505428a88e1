"""Permission updates: the CLI suggests them, and an `Allow` may apply them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from steersman._json import Json, JsonObject, is_array, is_sequence
from steersman._struct import CONVERT_ERRORS
from steersman.errors import UsageError

__all__ = [
    "AddDirectories",
    "AddRules",
    "Behavior",
    "Destination",
    "PermissionUpdate",
    "RemoveDirectories",
    "RemoveRules",
    "ReplaceRules",
    "SetMode",
    "ToolRule",
    "make_effective",
]

Behavior = Literal["allow", "deny", "ask"]
Destination = Literal["session", "localSettings", "projectSettings", "userSettings", "cliArg"]

_SOURCES = {"localSettings": "local", "projectSettings": "project", "userSettings": "user"}
"""The entry of `setting_sources` with which the CLI reads each destination."""


class ToolRule(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A rule as the CLI sends it, in two parts; `str(rule)` joins them."""

    tool_name: str
    rule_content: str | None = None

    def __str__(self) -> str:
        return (
            self.tool_name
            if self.rule_content is None
            else f"{self.tool_name}({self.rule_content})"
        )


class PermissionUpdate(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """The common field of all updates: where the CLI stores them."""

    destination: Destination = "session"


class AddRules(PermissionUpdate, frozen=True, kw_only=True, tag="addRules"):
    """Add rules.

    A rule may be given as text, such as `Bash(git *)`; it becomes a `ToolRule`.
    """

    rules: list[ToolRule]
    behavior: Behavior = "allow"

    def __post_init__(self) -> None:
        _check_rules(self, self.rules)


class ReplaceRules(PermissionUpdate, frozen=True, kw_only=True, tag="replaceRules"):
    """Replace all rules of this behavior at the destination.

    A rule may be given as text, such as `Bash(git *)`; it becomes a `ToolRule`.
    """

    rules: list[ToolRule]
    behavior: Behavior = "allow"

    def __post_init__(self) -> None:
        _check_rules(self, self.rules)


class RemoveRules(PermissionUpdate, frozen=True, kw_only=True, tag="removeRules"):
    """Remove rules.

    A rule may be given as text, such as `Bash(git *)`; it becomes a `ToolRule`.
    """

    rules: list[ToolRule]
    behavior: Behavior = "allow"

    def __post_init__(self) -> None:
        _check_rules(self, self.rules)


class SetMode(PermissionUpdate, frozen=True, kw_only=True, tag="setMode"):
    """Change the permission mode."""

    mode: str


class AddDirectories(PermissionUpdate, frozen=True, kw_only=True, tag="addDirectories"):
    """Add working directories for tools."""

    directories: list[str]


class RemoveDirectories(PermissionUpdate, frozen=True, kw_only=True, tag="removeDirectories"):
    """Remove working directories of tools."""

    directories: list[str]


RULE_TEXT = re.compile(
    r"(?P<tool>[A-Za-z][\w-]*\*?|mcp__[\w*-]+)(?:\((?P<content>.*)\))?", re.DOTALL
)
"""A rule as text: a tool, and optionally a content in brackets."""


def _check_rules(update: PermissionUpdate, given: object) -> None:
    """Replace rules that are text by their values: the CLI ignores an update that has text."""
    if not is_sequence(given):
        raise UsageError("rules", given, "a list of rules")
    if not (is_array(given) and all(isinstance(each, ToolRule) for each in given)):
        msgspec.structs.force_setattr(update, "rules", [*map(_rule_of, given)])


def _rule_of(given: object) -> ToolRule:
    if isinstance(given, ToolRule):
        return given
    found = RULE_TEXT.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise UsageError("rules", given, 'a ToolRule, or text such as "Write" or "Bash(git *)"')
    return ToolRule(found["tool"], found["content"])


Known = AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories


def read_update(found: Json) -> Json:
    """Return the update that `found` is; anything else, an unknown kind too, as it is."""
    try:
        return msgspec.convert(found, Known)
    except CONVERT_ERRORS:
        return found


def read_updates(found: Iterable[object]) -> list[PermissionUpdate]:
    """Return the updates in `found` that this release knows."""
    read = map(read_update, found)
    return [each for each in read if isinstance(each, PermissionUpdate)]


def make_effective(
    update: PermissionUpdate | JsonObject, setting_sources: Iterable[str]
) -> PermissionUpdate | JsonObject:
    """Return the update with a destination that has an effect in this session.

    The CLI also writes settings files that it does not read, and then an update has no effect. Such
    an update gets the destination `session` instead.
    """
    if isinstance(update, PermissionUpdate):
        if _is_read(update.destination, setting_sources):
            return update
        return msgspec.structs.replace(update, destination="session")
    if _is_read(str(update.get("destination")), setting_sources):
        return update
    return {**update, "destination": "session"}


def _is_read(destination: str, setting_sources: Iterable[str]) -> bool:
    source = _SOURCES.get(destination)
    return source is None or source in setting_sources
