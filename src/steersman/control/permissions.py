"""Verbs about what may run unasked."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import field

from steersman._struct import Readers, many_objects
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
    """The mode now in force."""

    mode: str = ""


class SetPermissionMode(
    Verb[PermissionModeSet], frozen=True, kw_only=True, tag="set_permission_mode"
):
    """Ask more, ask less, or plan only; questions that are open stay open.

    `bypassPermissions` is refused unless the CLI was started for it.
    """

    mode: Literal["default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"]


class PermissionRule(Part, frozen=True, kw_only=True):
    """One rule."""

    behavior: str = ""
    """`allow`, `deny` or `ask`."""
    rule: str = ""
    """Such as `Bash(git log:*)`."""
    source: str = ""
    editability: str = ""


class PermissionState(Part, frozen=True, kw_only=True):
    """The rules in force, and where they hold."""

    READERS: ClassVar[Readers] = {"rules": many_objects(PermissionRule)}

    rules: list[PermissionRule] = []
    workspace_directories: list[dict[str, Any]] = []
    original_cwd: str = ""
    managed_only: bool = False
    errors: list[dict[str, Any]] = []


class PermissionRules(Answer, frozen=True, kw_only=True):
    """The rules in force."""

    state: PermissionState = field(default_factory=PermissionState)


class ListPermissionRules(
    Verb[PermissionRules], frozen=True, kw_only=True, tag="list_permission_rules"
):
    """Ask which rules are in force."""
