"""Messages about session files: written, copied, lost."""

from __future__ import annotations

from msgspec import field

from steersman._json import Json, JsonDict
from steersman._struct import WireStruct
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
