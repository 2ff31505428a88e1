"""What is written to disk, copied elsewhere, or lost."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, WireStruct, many
from steersman.messages.base import MessageWire
from steersman.messages.system import SystemWire

__all__ = [
    "FilesPersisted",
    "MirrorError",
    "PersistedFile",
    "SessionWritesLost",
    "TranscriptMessage",
    "TranscriptMirror",
    "UnpersistedFile",
]


class TranscriptMirror(MessageWire, frozen=True, kw_only=True, tag="transcript_mirror"):
    """What the CLI has just written to its own session file."""

    file_path: str = field(default="", name="filePath")
    entries: list[dict[str, Any]] = []


class MirrorError(SystemWire, frozen=True, kw_only=True, tag="mirror_error"):
    """A copy of the session file misses something; the file itself does not."""

    error: str = ""
    key: dict[str, Any] | None = None


class SessionWritesLost(SystemWire, frozen=True, kw_only=True, tag="session_writes_lost"):
    """The session file could not be written, by a full disk or the like."""

    error_code: str = ""
    lost: Any = None
    transcript_session_ids: list[str] | None = None


class PersistedFile(WireStruct, frozen=True, kw_only=True):
    """A file that is kept."""

    filename: str = ""
    file_id: str = ""


class UnpersistedFile(WireStruct, frozen=True, kw_only=True):
    """A file that could not be kept."""

    filename: str = ""
    error: str = ""


class FilesPersisted(SystemWire, frozen=True, kw_only=True, tag="files_persisted"):
    """Files of a hosted session are kept, or not."""

    READERS: ClassVar[Readers] = {
        "files": many(PersistedFile),
        "failed": many(UnpersistedFile),
    }

    files: list[PersistedFile] = []
    failed: list[UnpersistedFile] = []
    processed_at: str = ""


TranscriptMessage = TranscriptMirror | MirrorError | SessionWritesLost | FilesPersisted
