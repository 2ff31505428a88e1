"""What `SessionStart` hooks give a session to begin with."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman._json import is_object
from steersman.hooks.outputs import SessionStartOutput
from steersman.hooks.replies import Reply

__all__ = ["openings"]


def openings(replies: Iterable[Reply]) -> list[SessionStartOutput]:
    """The part of each reply that is about the start, in order."""
    found: list[SessionStartOutput] = []
    for reply in replies:
        specific = reply.hook_specific_output
        if isinstance(specific, SessionStartOutput):
            found.append(specific)
        elif is_object(specific):
            found.append(msgspec.convert(specific, SessionStartOutput))
    return found
