"""Files in which journals and transcripts are stored."""

from steersman.stores.journal_file import JournalFile, read_journal
from steersman.stores.transcript_files import has_transcript, read_transcript, running_session

__all__ = [
    "JournalFile",
    "has_transcript",
    "read_journal",
    "read_transcript",
    "running_session",
]
