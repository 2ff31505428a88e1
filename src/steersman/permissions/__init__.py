"""May this tool run? The question and the two answers."""

from __future__ import annotations

from steersman.permissions.decisions import Allow, Decision, Deny
from steersman.permissions.questions import CanUseTool, PermissionContext

__all__ = ["Allow", "CanUseTool", "Decision", "Deny", "PermissionContext"]
