"""System messages that are meant for a person."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman._struct import Readers, WireStruct, many
from steersman.messages.system import SystemWire

__all__ = [
    "HookMessage",
    "HookProgress",
    "HookResponse",
    "HookStarted",
    "Informational",
    "LocalCommandOutput",
    "Memory",
    "MemoryRecall",
    "NoteMessage",
    "Notification",
]


class Informational(SystemWire, frozen=True, kw_only=True, tag="informational"):
    """A note: a hook that failed, a prompt that was blocked."""

    content: str = ""
    level: str = ""
    tool_use_id: str | None = None
    prevent_continuation: bool | None = None
    tag: str | None = None


class Notification(SystemWire, frozen=True, kw_only=True, tag="notification"):
    """Something to show for a while; a later one with the same `key` takes its place."""

    key: str = ""
    text: str = ""
    priority: str = ""
    color: str | None = None
    timeout_ms: float | None = None


class LocalCommandOutput(SystemWire, frozen=True, kw_only=True, tag="local_command_output"):
    """What a slash command printed that no model answered."""

    content: str = ""


class Memory(WireStruct, frozen=True, kw_only=True):
    """Something kept from another session."""

    path: str | None = None
    scope: str | None = None
    content: Any = None


class MemoryRecall(SystemWire, frozen=True, kw_only=True, tag="memory_recall"):
    """What the CLI remembered for this turn."""

    READERS: ClassVar[Readers] = {"memories": many(Memory)}

    mode: str = ""
    memories: list[Memory] = []


NoteMessage = Informational | Notification | LocalCommandOutput | MemoryRecall


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
