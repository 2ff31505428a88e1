"""The replies of `SessionStart` hooks."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman._json import is_object
from steersman.hooks.outputs import SessionStartOutput
from steersman.hooks.replies import Reply

__all__ = ["openings"]


def openings(replies: Iterable[Reply]) -> list[SessionStartOutput]:
    """Return the `SessionStart` part of each reply, in order."""
    found: list[SessionStartOutput] = []
    for reply in replies:
        specific = reply.hook_specific_output
        if isinstance(specific, SessionStartOutput):
            found.append(specific)
        elif is_object(specific):
            found.append(msgspec.convert(specific, SessionStartOutput))
    return found
