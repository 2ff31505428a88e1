"""Verbs about files: rewind, read, suggest, and adding directories."""

from __future__ import annotations

from typing import ClassVar, Literal

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
    """The result of a rewind; a dry run lists the files, a real one counts skipped links."""

    can_rewind: bool = False
    error: str = ""
    files_changed: list[str] = []
    insertions: int = 0
    deletions: int = 0
    skipped_links: int = 0


class RewindFiles(Verb[Rewound], frozen=True, kw_only=True, tag="rewind_files"):
    """Restore the content that files had when a prompt was sent.

    Refused unless the CLI was started with file checkpoints.
    """

    user_message_id: Text
    """The uuid of the prompt, such as `turn.uuid`."""
    dry_run: bool = False
    """Only report what would change."""


class FileContents(Answer, frozen=True, kw_only=True):
    """The content of a file."""

    contents: str = ""
    abs_path: str = ""
    truncated: bool = False
    encoding: str = "utf-8"
    lossy: bool = False
    """Some bytes were not UTF-8 and were replaced; use the encoding `base64` to get them."""


class ReadFile(Verb[FileContents], frozen=True, kw_only=True, tag="read_file"):
    """Read a file on the CLI's machine. Refused outside its working directories."""

    path: Text
    max_bytes: Count | None = None
    encoding: Literal["utf-8", "base64"] | None = None


class SeedReadState(Verb[Answer], frozen=True, kw_only=True, tag="seed_read_state"):
    """Mark a file as read, so that the model may edit it."""

    path: Text
    mtime: Amount
    """The last known modification time of the file, in milliseconds since 1970."""


class FileSuggestion(Part, frozen=True, kw_only=True):
    """A file that matches the query."""

    path: str = ""
    score: float | None = None


class SuggestedFiles(Answer, frozen=True, kw_only=True):
    """The files that match the query."""

    suggestions: list[FileSuggestion] = []
    cwd: str = ""


class FileSuggestions(Verb[SuggestedFiles], frozen=True, kw_only=True, tag="file_suggestions"):
    """Request the files that match what a user types after `@`; an empty query lists the nearest.

    The CLI starts to collect file names with the first such request, which may find nothing.
    """

    query: str


class RepoRoot(Answer, frozen=True, kw_only=True):
    """The directory that was added."""

    directory: str = ""


class RegisterRepoRoot(Verb[RepoRoot], frozen=True, kw_only=True, tag="register_repo_root"):
    """Add a directory below the working one. Refused if it does not exist or was already added."""

    TIMEOUT: ClassVar[float | None] = 120.0

    directory: Text
    reload_claude_md: bool = False
    reload_plugins: bool = False
    reload_skills: bool = False
