"""Stores of journals, transcripts and sessions. Names are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.stores._sql.fleet import StoredBudget as StoredBudget
    from steersman.stores._sql.fleet import WorkerRow as WorkerRow
    from steersman.stores.directory import DirectoryStore as DirectoryStore
    from steersman.stores.journal_file import JournalFile as JournalFile
    from steersman.stores.journal_reader import follow_journal as follow_journal
    from steersman.stores.journal_reader import read_journal as read_journal
    from steersman.stores.memory import MemoryStore as MemoryStore
    from steersman.stores.postgres import PostgresStore as PostgresStore
    from steersman.stores.sqlite import SqliteStore as SqliteStore
    from steersman.stores.transcript_files import has_transcript as has_transcript
    from steersman.stores.transcript_files import read_transcript as read_transcript
    from steersman.stores.transcript_files import running_session as running_session
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "_sql.fleet": ("StoredBudget", "WorkerRow"),
            "directory": ("DirectoryStore",),
            "journal_file": ("JournalFile",),
            "journal_reader": ("follow_journal", "read_journal"),
            "memory": ("MemoryStore",),
            "postgres": ("PostgresStore",),
            "sqlite": ("SqliteStore",),
            "transcript_files": ("has_transcript", "read_transcript", "running_session"),
        },
    )

__all__ = [
    "DirectoryStore",
    "JournalFile",
    "MemoryStore",
    "PostgresStore",
    "SqliteStore",
    "StoredBudget",
    "WorkerRow",
    "follow_journal",
    "has_transcript",
    "read_journal",
    "read_transcript",
    "running_session",
]
