"""Verbs about settings, and about hooks from settings and plugins."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from steersman._json import Json, JsonDict
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
    """One source of settings."""

    source: str = ""
    """`userSettings`, `projectSettings`, `localSettings`, `flagSettings`, ..."""
    settings: JsonDict = {}


class Settings(Answer, frozen=True, kw_only=True):
    """The settings in force, and their sources."""

    effective: JsonDict = {}
    sources: list[SettingsSource] = []
    applied: JsonDict = {}
    """Values that result from the settings: the model, the effort, ..."""
    errors: list[JsonDict] = []
    """Settings files that were skipped, and why. Only this answer reports them."""
    withheld: Json = None


class GetSettings(Verb[Settings], frozen=True, kw_only=True, tag="get_settings"):
    """Request the settings in force."""


class ApplyFlagSettings(Verb[Answer], frozen=True, kw_only=True, tag="apply_flag_settings"):
    """Change settings for this session only; `None` removes a key."""

    settings: JsonDict


class UpdateSettings(Verb[Answer], frozen=True, kw_only=True, tag="update_settings"):
    """Write a setting to a file. Few keys are allowed, and only in sources that are read."""

    source: Literal["localSettings", "userSettings"]
    settings: JsonDict


class HookEventInfo(Part, frozen=True, kw_only=True):
    """A hook event."""

    name: str = ""
    summary: str = ""
    supports_matcher: bool = False
    hook_count: int = 0


class HookInfo(Part, frozen=True, kw_only=True):
    """A hook from settings or from a plugin."""

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
    """The managed policy for hooks."""

    disabled_by_policy: bool = False
    managed_only: bool = False
    plugin_only: bool = False
    all_disabled: bool = False
    policy_hook_count: int = 0


class HooksListing(Answer, frozen=True, kw_only=True):
    """The hooks from settings and plugins. Hooks of this process are not listed."""

    events: list[HookEventInfo] = []
    hooks: list[HookInfo] = []
    event_catalog: list[HookEventInfo] = []
    """Every hook event that this CLI supports."""
    policy: HookPolicy = field(default_factory=HookPolicy)
    safe_mode: JsonDict | None = None
    bare_mode: JsonDict | None = None
    errors: list[JsonDict] = []


class GetHooksListing(Verb[HooksListing], frozen=True, kw_only=True, tag="get_hooks_listing"):
    """Request the hooks from settings and plugins, and the known hook events."""
