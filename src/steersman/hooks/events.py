"""Hook events: one class per moment the CLI lets us look in.

To add an event, write its class here. Its name is the CLI's name for it.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from steersman._values import Wire

__all__ = ["HookEvent", "PostToolUse", "PreToolUse", "Stop", "UserPromptSubmit"]


class HookEvent(Wire, frozen=True, kw_only=True, tag_field="hook_event_name"):
    """What every hook is told; `raw` has the fields that a class does not name."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = ""
    agent_id: str | None = None
    agent_type: str | None = None


class PreToolUse(HookEvent, frozen=True, kw_only=True, tag="PreToolUse"):
    """A tool is about to run."""

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_use_id: str = ""


class PostToolUse(HookEvent, frozen=True, kw_only=True, tag="PostToolUse"):
    """A tool has run."""

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_use_id: str = ""
    tool_response: Any = None
    duration_ms: float = field(default=0.0)


class UserPromptSubmit(HookEvent, frozen=True, kw_only=True, tag="UserPromptSubmit"):
    """A prompt is about to reach the model."""

    prompt: str = ""


class Stop(HookEvent, frozen=True, kw_only=True, tag="Stop"):
    """The turn is about to end."""

    stop_hook_active: bool = False
    last_assistant_message: str | None = None
