"""The exit statuses of `steersman`, and which error leads to which."""

from __future__ import annotations

COMPLETED, FAILED, MISUSE, DENIED, LIMIT, CANNOT_START = range(6)
INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""

AT_LIMIT = frozenset({"max_turns", "budget_exhausted"})
"""The CLI's words for a turn that reached a limit."""


def status_of(error: BaseException) -> int:
    """Return the exit status of a command that ended with `error`."""
    from steersman import errors  # noqa: PLC0415 - slow to import, and seldom needed

    if isinstance(error, errors.UsageError):
        return MISUSE
    if isinstance(error, errors.LimitReached):
        return LIMIT
    if isinstance(error, errors.TurnStopped) and error.why in AT_LIMIT:
        return LIMIT
    if isinstance(error, errors.LaunchError | errors.StartupError | errors.NotLoggedIn):
        return CANNOT_START
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
