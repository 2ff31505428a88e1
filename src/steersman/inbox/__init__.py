"""Asks that wait for an answer, over all sessions of a process."""

from steersman.inbox.inbox import Inbox
from steersman.inbox.outcomes import AskOutcome, Change
from steersman.inbox.watching import Watch

__all__ = ["AskOutcome", "Change", "Inbox", "Watch"]
