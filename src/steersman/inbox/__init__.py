"""The inbox: asks of all sessions of a process that wait for an answer."""

from steersman.inbox.changes import AskOutcome, Change, Watch
from steersman.inbox.inbox import Inbox, Settle

__all__ = ["AskOutcome", "Change", "Inbox", "Settle", "Watch"]
