"""Closes the sessions of `steersman.sync` when the program exits, before CLIs are killed."""

from __future__ import annotations

from steersman._portal.portal import shared_portal
from steersman.transports.at_exit import AT_EXIT

EXIT_PATIENCE = 10.0
"""Seconds for all sessions to close; then their CLIs are killed."""


def close_sessions() -> None:
    """Close every session and end the event loop, within `EXIT_PATIENCE` seconds."""
    shared_portal().thread.close(EXIT_PATIENCE)


# Before the function that kills every CLI.
AT_EXIT.insert(0, close_sessions)
