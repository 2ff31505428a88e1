"""What is written to disk, copied elsewhere, or lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import field

from steersman._values import Wire
from steersman.messages.lines import MessageWire
from steersman.messages.nesting import Reader, adopt_inside, many
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


class PersistedFile(Wire, frozen=True, kw_only=True):
    """A file that is kept."""

    filename: str = ""
    file_id: str = ""


class UnpersistedFile(Wire, frozen=True, kw_only=True):
    """A file that could not be kept."""

    filename: str = ""
    error: str = ""


class FilesPersisted(SystemWire, frozen=True, kw_only=True, tag="files_persisted"):
    """Files of a hosted session are kept, or not."""

    READERS: ClassVar[Mapping[str, Reader]] = {
        "files": many(PersistedFile),
        "failed": many(UnpersistedFile),
    }

    files: list[PersistedFile] = []
    failed: list[UnpersistedFile] = []
    processed_at: str = ""

    def adopt(self) -> None:
        """Each stands in `files` or in `failed`."""
        adopt_inside(self)


TranscriptMessage = TranscriptMirror | MirrorError | SessionWritesLost | FilesPersisted
