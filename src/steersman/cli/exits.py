"""Which error leads to which exit status."""

from __future__ import annotations

from steersman.cli.statuses import CANNOT_START, FAILED, INTERRUPTED, LIMIT, MISUSE
from steersman.errors import (
    LaunchError,
    LimitReached,
    NotLoggedIn,
    StartupError,
    TurnStopped,
    UsageError,
)

AT_LIMIT = frozenset({"max_turns", "budget_exhausted"})
"""The CLI's words for a turn that reached a limit."""


def status_of(error: BaseException) -> int:
    """Return the exit status of a command that ended with `error`."""
    if isinstance(error, UsageError):
        return MISUSE
    if isinstance(error, LimitReached):
        return LIMIT
    if isinstance(error, TurnStopped) and error.why in AT_LIMIT:
        return LIMIT
    if isinstance(error, LaunchError | StartupError | NotLoggedIn):
        return CANNOT_START
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
