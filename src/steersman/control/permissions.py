"""Verbs about permission modes and rules."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from steersman._json import JsonDict
from steersman.control.verbs import Answer, Part, Verb

__all__ = [
    "ListPermissionRules",
    "PermissionModeSet",
    "PermissionRule",
    "PermissionRules",
    "PermissionState",
    "SetPermissionMode",
]


class PermissionModeSet(Answer, frozen=True, kw_only=True):
    """The permission mode in force."""

    mode: str = ""


class SetPermissionMode(
    Verb[PermissionModeSet], frozen=True, kw_only=True, tag="set_permission_mode"
):
    """Change the permission mode. Open permission requests stay open.

    `bypassPermissions` is refused unless the CLI was started with permission to use it.
    """

    mode: Literal["default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"]


class PermissionRule(Part, frozen=True, kw_only=True):
    """One permission rule."""

    behavior: str = ""
    """`allow`, `deny` or `ask`."""
    rule: str = ""
    """The rule in the CLI's syntax, such as `Bash(git log:*)`."""
    source: str = ""
    editability: str = ""


class PermissionState(Part, frozen=True, kw_only=True):
    """The permission rules in force, and the directories they apply to."""

    rules: list[PermissionRule] = []
    workspace_directories: list[JsonDict] = []
    original_cwd: str = ""
    managed_only: bool = False
    errors: list[JsonDict] = []


class PermissionRules(Answer, frozen=True, kw_only=True):
    """The permission rules in force."""

    state: PermissionState = field(default_factory=PermissionState)


class ListPermissionRules(
    Verb[PermissionRules], frozen=True, kw_only=True, tag="list_permission_rules"
):
    """Request the permission rules in force."""
