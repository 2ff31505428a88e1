"""The inbox: asks of all sessions of a process, or of a store, that wait for an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.inbox.changes import AskOutcome as AskOutcome
    from steersman.inbox.changes import Change as Change
    from steersman.inbox.changes import Watch as Watch
    from steersman.inbox.inbox import Inbox as Inbox
    from steersman.inbox.inbox import Settle as Settle
    from steersman.inbox.stored import StoredInbox as StoredInbox
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "changes": ("AskOutcome", "Change", "Watch"),
            "inbox": ("Inbox", "Settle"),
            "stored": ("StoredInbox",),
        },
    )

__all__ = ["AskOutcome", "Change", "Inbox", "Settle", "StoredInbox", "Watch"]
