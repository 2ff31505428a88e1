"""What stands in a journal: one entry per line, decision and change of state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from steersman.messages import Message, parse_message

__all__ = ["Entry", "Kind", "Lagged"]


class Kind(Enum):
    """What an entry tells of."""

    MESSAGE = "message"
    """A line that the CLI means for people."""
    PARTIAL = "partial"
    """A piece of a message still being written."""
    BOOKKEEPING = "bookkeeping"
    """A line that we switched on to know where we stand: replays, lifecycles, states."""
    CONTROL = "control"
    """A control line from the CLI."""
    SENT = "sent"
    """A line to the CLI, with secrets left out."""
    NOISE = "noise"
    """A line on stdout that is not JSON."""
    OVERSIZE = "oversize"
    """A line that was too long and is dropped; `details` has its size, `line` its head."""
    PHASE = "phase"
    """The session went into another phase."""
    SETTLED = "settled"
    """A turn is over."""
    FAULT = "fault"
    """A callback of the host failed; `details` says which and how."""


NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Most entries have no details; they share this."""


class Entry:
    """One thing that happened, with its place in the order of things."""

    __slots__ = ("_message", "at", "details", "kind", "line", "seq", "turns")

    def __init__(
        self,
        seq: int,
        at: float,
        kind: Kind,
        line: bytes = b"",
        turns: tuple[str, ...] = (),
        details: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.seq = seq
        self.at = at
        """Seconds since the epoch."""
        self.kind = kind
        self.line = line
        self.turns = turns
        """The uuids of the prompts that it belongs to."""
        self.details = details
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """What `line` says, decoded when somebody first looks."""
        if self._message is None:
            self._message = parse_message(self.line)
        return self._message


@dataclass(frozen=True, slots=True)
class Lagged:
    """Stands in a reading of the journal where `lost` entries are gone from memory."""

    lost: int
