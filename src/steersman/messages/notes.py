"""System messages that are meant for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from steersman._values import Wire
from steersman.messages.nesting import Reader, adopt_inside, many
from steersman.messages.system import SystemWire

__all__ = [
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


class Memory(Wire, frozen=True, kw_only=True):
    """Something kept from another session."""

    path: str | None = None
    scope: str | None = None
    content: Any = None


class MemoryRecall(SystemWire, frozen=True, kw_only=True, tag="memory_recall"):
    """What the CLI remembered for this turn."""

    READERS: ClassVar[Mapping[str, Reader]] = {"memories": many(Memory)}

    mode: str = ""
    memories: list[Memory] = []

    def adopt(self) -> None:
        """Each stands in `memories`."""
        adopt_inside(self)


NoteMessage = Informational | Notification | LocalCommandOutput | MemoryRecall
