"""The exit statuses of `steersman`, and which error leads to which."""

from __future__ import annotations

from steersman.errors import (
    LaunchError,
    LimitReached,
    NotLoggedIn,
    StartupError,
    TurnStopped,
    UsageError,
)

__all__ = [
    "CANNOT_START",
    "COMPLETED",
    "DENIED",
    "FAILED",
    "INTERRUPTED",
    "LIMIT",
    "MISUSE",
    "status_of",
]

COMPLETED, FAILED, MISUSE, DENIED, LIMIT, CANNOT_START = range(6)
INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""

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
