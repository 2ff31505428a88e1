"""Changes of what may run unasked: the CLI offers them, and an answer may ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from steersman._struct import CONVERT_ERRORS

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
    "where_it_counts",
]

Behavior = Literal["allow", "deny", "ask"]
Destination = Literal["session", "localSettings", "projectSettings", "userSettings", "cliArg"]

_SOURCES = {"localSettings": "local", "projectSettings": "project", "userSettings": "user"}
"""Which of `setting_sources` reads back what is written to a destination."""


class ToolRule(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A rule in its two parts; `str` gives it as one."""

    tool_name: str
    rule_content: str | None = None

    def __str__(self) -> str:
        return (
            self.tool_name
            if self.rule_content is None
            else f"{self.tool_name}({self.rule_content})"
        )


class PermissionUpdate(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """What all changes have: where they are kept."""

    destination: Destination = "session"


class AddRules(PermissionUpdate, frozen=True, kw_only=True, tag="addRules"):
    """Have these rules too."""

    rules: list[ToolRule]
    behavior: Behavior = "allow"


class ReplaceRules(PermissionUpdate, frozen=True, kw_only=True, tag="replaceRules"):
    """Have these rules in place of all others of their behaviour there."""

    rules: list[ToolRule]
    behavior: Behavior = "allow"


class RemoveRules(PermissionUpdate, frozen=True, kw_only=True, tag="removeRules"):
    """Have these rules no more."""

    rules: list[ToolRule]
    behavior: Behavior = "allow"


class SetMode(PermissionUpdate, frozen=True, kw_only=True, tag="setMode"):
    """Go into another permission mode."""

    mode: str


class AddDirectories(PermissionUpdate, frozen=True, kw_only=True, tag="addDirectories"):
    """Let tools work in these directories too."""

    directories: list[str]


class RemoveDirectories(PermissionUpdate, frozen=True, kw_only=True, tag="removeDirectories"):
    """Let tools work in these directories no more."""

    directories: list[str]


Known = AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories


def read_updates(found: Iterable[Any]) -> list[PermissionUpdate]:
    """The changes among `found` that this release knows."""
    known: list[PermissionUpdate] = []
    for each in found:
        try:
            known.append(msgspec.convert(each, Known))
        except CONVERT_ERRORS:
            continue
    return known


def where_it_counts(
    update: PermissionUpdate | Mapping[str, Any], setting_sources: Iterable[str]
) -> PermissionUpdate | Mapping[str, Any]:
    """The change as it has an effect in this session.

    The CLI writes a settings file that it does not read, and the session never hears of it: such a
    change is made to the session instead.
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
