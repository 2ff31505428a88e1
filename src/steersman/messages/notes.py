"""System messages for the user, and about runs of command hooks and session files."""

from __future__ import annotations

from msgspec import field

from steersman._json import Json, JsonDict
from steersman._struct import WireStruct
from steersman.messages.base import MessageWire
from steersman.messages.system import SystemWire

__all__ = [
    "FilesPersisted",
    "HookMessage",
    "HookProgress",
    "HookResponse",
    "HookStarted",
    "Informational",
    "LocalCommandOutput",
    "Memory",
    "MemoryRecall",
    "MirrorError",
    "NoteMessage",
    "Notification",
    "PersistedFile",
    "SessionWritesLost",
    "TranscriptMessage",
    "TranscriptMirror",
    "UnpersistedFile",
]


class Informational(SystemWire, frozen=True, kw_only=True, tag="informational"):
    """A note for the user, such as a failed hook or a blocked prompt."""

    content: str = ""
    level: str = ""
    tool_use_id: str | None = None
    prevent_continuation: bool | None = None
    tag: str | None = None


class Notification(SystemWire, frozen=True, kw_only=True, tag="notification"):
    """A notification to show for some time; one with the same `key` replaces it."""

    key: str = ""
    text: str = ""
    priority: str = ""
    color: str | None = None
    timeout_ms: float | None = None


class LocalCommandOutput(SystemWire, frozen=True, kw_only=True, tag="local_command_output"):
    """The output of a slash command that ran without the model."""

    content: str = ""


class Memory(WireStruct, frozen=True, kw_only=True):
    """A memory from another session."""

    path: str | None = None
    scope: str | None = None
    content: Json = None


class MemoryRecall(SystemWire, frozen=True, kw_only=True, tag="memory_recall"):
    """The memories that the CLI added to this turn."""

    mode: str = ""
    memories: list[Memory] = []


NoteMessage = Informational | Notification | LocalCommandOutput | MemoryRecall


class HookStarted(SystemWire, frozen=True, kw_only=True, tag="hook_started"):
    """A command hook started. For hooks of this process the CLI sends none of these messages."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""


class HookProgress(SystemWire, frozen=True, kw_only=True, tag="hook_progress"):
    """The output of a command hook so far."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""
    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponse(SystemWire, frozen=True, kw_only=True, tag="hook_response"):
    """A command hook ended."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""
    output: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: str = ""


HookMessage = HookStarted | HookProgress | HookResponse


class TranscriptMirror(MessageWire, frozen=True, kw_only=True, tag="transcript_mirror"):
    """The entries that the CLI has just written to its session file."""

    file_path: str = field(default="", name="filePath")
    entries: list[JsonDict] = []


class MirrorError(SystemWire, frozen=True, kw_only=True, tag="mirror_error"):
    """The copy of a session file is incomplete; the file itself is not."""

    error: str = ""
    key: JsonDict | None = None


class SessionWritesLost(SystemWire, frozen=True, kw_only=True, tag="session_writes_lost"):
    """The session file could not be written, for example because the disk is full."""

    error_code: str = ""
    lost: Json = None
    transcript_session_ids: list[str] | None = None


class PersistedFile(WireStruct, frozen=True, kw_only=True):
    """A file that was saved."""

    filename: str = ""
    file_id: str = ""


class UnpersistedFile(WireStruct, frozen=True, kw_only=True):
    """A file that could not be saved."""

    filename: str = ""
    error: str = ""


class FilesPersisted(SystemWire, frozen=True, kw_only=True, tag="files_persisted"):
    """Files of a hosted session were saved, or could not be."""

    files: list[PersistedFile] = []
    failed: list[UnpersistedFile] = []
    processed_at: str = ""


TranscriptMessage = TranscriptMirror | MirrorError | SessionWritesLost | FilesPersisted
