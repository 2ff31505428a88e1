"""System messages about hooks that are commands; callbacks of ours are asked, not told."""

from __future__ import annotations

from steersman.messages.system import SystemWire

__all__ = ["HookMessage", "HookProgress", "HookResponse", "HookStarted"]


class HookStarted(SystemWire, frozen=True, kw_only=True, tag="hook_started"):
    """A hook began."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""


class HookProgress(SystemWire, frozen=True, kw_only=True, tag="hook_progress"):
    """What a hook has printed so far."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""
    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponse(SystemWire, frozen=True, kw_only=True, tag="hook_response"):
    """A hook ended."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""
    output: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: str = ""


HookMessage = HookStarted | HookProgress | HookResponse
