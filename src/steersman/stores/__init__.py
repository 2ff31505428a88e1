"""Where things are kept beyond their process. One file per place."""

from steersman.stores.journal_file import JournalFile, read_journal

__all__ = ["JournalFile", "read_journal"]
