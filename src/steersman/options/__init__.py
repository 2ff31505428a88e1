"""`Options`: what a caller may set before a session starts, checked and stored. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.options.agents import AgentDefinition, AgentEffort
    from steersman.options.conflicts import ShadowedCallbackWarning
    from steersman.options.fields import (
        Effort,
        Options,
        PermissionMode,
        SettingSource,
        options_from,
    )
    from steersman.options.limits import Caps, Limits, Revival, StartupLimits, Watchdog
    from steersman.options.plugins import Plugin
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "agents": ("AgentDefinition", "AgentEffort"),
            "conflicts": ("ShadowedCallbackWarning",),
            "fields": ("Effort", "Options", "PermissionMode", "SettingSource", "options_from"),
            "limits": ("Caps", "Limits", "Revival", "StartupLimits", "Watchdog"),
            "plugins": ("Plugin",),
        },
    )

__all__ = [
    "AgentDefinition",
    "AgentEffort",
    "Caps",
    "Effort",
    "Limits",
    "Options",
    "PermissionMode",
    "Plugin",
    "Revival",
    "SettingSource",
    "ShadowedCallbackWarning",
    "StartupLimits",
    "Watchdog",
    "options_from",
]
