"""What a caller may ask for, before a session starts."""

from steersman.options.fields import (
    Options,
    PermissionMode,
    SettingSource,
    StartupLimits,
    options_from,
)

__all__ = ["Options", "PermissionMode", "SettingSource", "StartupLimits", "options_from"]
