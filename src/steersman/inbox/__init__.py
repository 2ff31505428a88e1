"""Asks that wait for an answer, over all sessions of a process."""

from steersman.inbox.changes import AskOutcome, Change, Watch
from steersman.inbox.inbox import Inbox

__all__ = ["AskOutcome", "Change", "Inbox", "Watch"]
