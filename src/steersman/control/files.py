"""Verbs about files: going back, reading, naming, adding directories."""

from __future__ import annotations

from typing import ClassVar, Literal

from steersman._struct import Readers, many_objects
from steersman.control.verbs import Amount, Answer, Count, Part, Text, Verb

__all__ = [
    "FileContents",
    "FileSuggestion",
    "FileSuggestions",
    "ReadFile",
    "RegisterRepoRoot",
    "RepoRoot",
    "RewindFiles",
    "Rewound",
    "SeedReadState",
    "SuggestedFiles",
]


class Rewound(Answer, frozen=True, kw_only=True):
    """What going back changed; a dry run tells of files, a real one of links."""

    can_rewind: bool = False
    error: str = ""
    files_changed: list[str] = []
    insertions: int = 0
    deletions: int = 0
    skipped_links: int = 0


class RewindFiles(Verb[Rewound], frozen=True, kw_only=True, tag="rewind_files"):
    """Give files back the content that they had when a prompt was sent.

    Refused unless the CLI was started with file checkpoints.
    """

    user_message_id: Text
    """The prompt's uuid, such as `turn.uuid`."""
    dry_run: bool = False
    """Only tell what would change."""


class FileContents(Answer, frozen=True, kw_only=True):
    """What stands in a file."""

    contents: str = ""
    abs_path: str = ""
    truncated: bool = False
    encoding: str = "utf-8"
    lossy: bool = False
    """Some bytes were no UTF-8 and are lost; ask for base64 to have them."""


class ReadFile(Verb[FileContents], frozen=True, kw_only=True, tag="read_file"):
    """Read a file where the CLI runs; refused outside of its working directories."""

    path: Text
    max_bytes: Count | None = None
    encoding: Literal["utf-8", "base64"] | None = None


class SeedReadState(Verb[Answer], frozen=True, kw_only=True, tag="seed_read_state"):
    """Let the model edit a file as if it had just read it."""

    path: Text
    mtime: Amount
    """Milliseconds since 1970, when the file was last changed as far as you know."""


class FileSuggestion(Part, frozen=True, kw_only=True):
    """A file that fits what was typed."""

    path: str = ""
    score: float | None = None


class SuggestedFiles(Answer, frozen=True, kw_only=True):
    """Files that fit what was typed."""

    READERS: ClassVar[Readers] = {"suggestions": many_objects(FileSuggestion)}

    suggestions: list[FileSuggestion] = []
    cwd: str = ""


class FileSuggestions(Verb[SuggestedFiles], frozen=True, kw_only=True, tag="file_suggestions"):
    """Ask which files someone may mean who types `@` and this; nothing gives the nearest ones.

    The CLI gathers names from the first question on: at first there may be no suggestions.
    """

    query: str


class RepoRoot(Answer, frozen=True, kw_only=True):
    """The directory that was added."""

    directory: str = ""


class RegisterRepoRoot(Verb[RepoRoot], frozen=True, kw_only=True, tag="register_repo_root"):
    """Add a directory below the working one; refused if it is not there, or already added."""

    TIMEOUT: ClassVar[float | None] = 120.0

    directory: Text
    reload_claude_md: bool = False
    reload_plugins: bool = False
    reload_skills: bool = False
