"""The words that options accept: the values of `permission_mode`, `setting_sources` and `effort`.

A module of its own, which imports nothing, so that the checks and the typed keywords can share it.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["Effort", "PermissionMode", "SettingSource"]

PermissionMode = Literal["default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"]
SettingSource = Literal["user", "project", "local"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
