"""What a caller may ask for, before a session starts."""

from steersman.options.agents import AgentDefinition, AgentEffort
from steersman.options.contradictions import ShadowedCallbackWarning
from steersman.options.fields import (
    Effort,
    Options,
    PermissionMode,
    SettingSource,
    options_from,
)
from steersman.options.limits import Caps, Limits, Revival, StartupLimits, Watchdog
from steersman.options.plugins import Plugin

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
