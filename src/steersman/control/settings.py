"""Verbs about settings, and the hooks that stand in them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import field

from steersman._struct import Readers, many_objects
from steersman.control.verbs import Answer, Part, Verb

__all__ = [
    "ApplyFlagSettings",
    "GetHooksListing",
    "GetSettings",
    "HookEventInfo",
    "HookInfo",
    "HookPolicy",
    "HooksListing",
    "Settings",
    "SettingsSource",
    "UpdateSettings",
]


class SettingsSource(Part, frozen=True, kw_only=True):
    """One layer of settings."""

    source: str = ""
    """`userSettings`, `projectSettings`, `localSettings`, `flagSettings`, ..."""
    settings: dict[str, Any] = {}


class Settings(Answer, frozen=True, kw_only=True):
    """The settings in force, and where they come from."""

    READERS: ClassVar[Readers] = {"sources": many_objects(SettingsSource)}

    effective: dict[str, Any] = {}
    sources: list[SettingsSource] = []
    applied: dict[str, Any] = {}
    """What the CLI made of them: the model, the effort, ..."""
    errors: list[dict[str, Any]] = []
    """Files that were skipped, and why; nothing else tells of them."""
    withheld: Any = None


class GetSettings(Verb[Settings], frozen=True, kw_only=True, tag="get_settings"):
    """Ask which settings are in force."""


class ApplyFlagSettings(Verb[Answer], frozen=True, kw_only=True, tag="apply_flag_settings"):
    """Change settings for this session only; `None` takes a key away."""

    settings: dict[str, Any]


class UpdateSettings(Verb[Answer], frozen=True, kw_only=True, tag="update_settings"):
    """Write a setting to a file; few keys are allowed, and only in sources that are read."""

    source: Literal["localSettings", "userSettings"]
    settings: dict[str, Any]


class HookEventInfo(Part, frozen=True, kw_only=True):
    """A moment at which hooks may run."""

    name: str = ""
    summary: str = ""
    supports_matcher: bool = False
    hook_count: int = 0


class HookInfo(Part, frozen=True, kw_only=True):
    """A hook that stands in settings or in a plugin."""

    event: str = ""
    matcher: str = ""
    source: str = ""
    source_label: str = ""
    plugin_name: str = ""
    type: str = ""
    display_text: str = ""
    command_text: str = ""
    condition: str = ""
    timeout: float | None = None
    disabled: bool = False


class HookPolicy(Part, frozen=True, kw_only=True):
    """What the machine's owner allows."""

    disabled_by_policy: bool = False
    managed_only: bool = False
    plugin_only: bool = False
    all_disabled: bool = False
    policy_hook_count: int = 0


class HooksListing(Answer, frozen=True, kw_only=True):
    """The hooks in settings and plugins; those of this process are not among them."""

    READERS: ClassVar[Readers] = {
        "events": many_objects(HookEventInfo),
        "hooks": many_objects(HookInfo),
        "event_catalog": many_objects(HookEventInfo),
    }

    events: list[HookEventInfo] = []
    hooks: list[HookInfo] = []
    event_catalog: list[HookEventInfo] = []
    """Every event that this CLI knows."""
    policy: HookPolicy = field(default_factory=HookPolicy)
    safe_mode: dict[str, Any] | None = None
    bare_mode: dict[str, Any] | None = None
    errors: list[dict[str, Any]] = []


class GetHooksListing(Verb[HooksListing], frozen=True, kw_only=True, tag="get_hooks_listing"):
    """Ask which hooks stand in settings and plugins, and which events there are."""
