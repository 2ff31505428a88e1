"""What a session with a store knows of itself there: its name, its lease, its conversation."""

from __future__ import annotations

from dataclasses import dataclass

from steersman._session.lease_owner import new_lease
from steersman.errors import UsageError
from steersman.options import Options
from steersman.ports import Conversation, DurableWork, SupportsWork


@dataclass(slots=True)
class SessionWork:
    """The rows of one session in a store."""

    work: DurableWork
    key: str | None
    """The key that the conversation was opened with, if it was."""
    owner: str
    """Which process has the conversation, in words."""
    machine: str
    """Where the CLI of this session has its files."""
    token: str
    """What the lease of this session belongs to."""
    seconds: float
    """How long the lease lasts, from each renewal on."""
    before: Conversation | None = None
    """The conversation as it was when the lease was taken; None if it is new, or not taken yet."""


def work_of(options: Options, key: str | None) -> SessionWork | None:
    """Return the rows of a session with these options; None if its inbox is in no store."""
    # Most sessions have no inbox, and a protocol is slow to check.
    if options.inbox is None or not isinstance(options.inbox, SupportsWork):
        return None
    import platform  # noqa: PLC0415 - few sessions have a store

    machine = platform.node()
    owner, token = new_lease(machine)
    return SessionWork(options.inbox.work, key, owner, machine, token, options.park.lease)


def refuse_other_machine(work: SessionWork, place: str, *, is_here: bool | None) -> None:
    """Raise `UsageError` if the CLI's file of the conversation is on another machine.

    `is_here` is whether it is on this one. On the machine that began the conversation, a file
    that is missing was never written: the CLI was killed before, and the prompts are sent again.
    """
    before = work.before
    if before is None or not before.begun or is_here is not False:
        return
    if before.machine not in ("", work.machine):
        raise UsageError(
            "conversation",
            before.key,
            f"one whose files are on this machine, {work.machine}: those of {place} are on"
            f" {before.machine}",
            hint="open it there, or give all machines a session_store= that keeps conversations",
        )
