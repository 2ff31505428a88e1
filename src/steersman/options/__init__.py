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
from steersman.options.limits import StartupLimits
from steersman.options.plugins import Plugin

__all__ = [
    "AgentDefinition",
    "AgentEffort",
    "Effort",
    "Options",
    "PermissionMode",
    "Plugin",
    "SettingSource",
    "ShadowedCallbackWarning",
    "StartupLimits",
    "options_from",
]
