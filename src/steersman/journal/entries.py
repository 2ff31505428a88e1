"""What stands in a journal: one entry per line, decision and change of state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from msgspec import Struct

from steersman._json import JsonObject
from steersman._values import source_of
from steersman.messages.parsing import Message, parse_message, parse_piece

__all__ = ["Entry", "Kind", "Lagged", "message_of"]


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
    TOOL_FAILED = "tool_failed"
    """A tool of the host raised; `details` has its name and the kind of error."""
    SERVER = "server"
    """A tool server is in another state than before; `details` has name, status and error."""
    DECIDED = "decided"
    """Somebody decided about a tool call; `details` says who, what and why."""
    UNDECIDED = "undecided"
    """A tool ran that nobody is on record to have decided about."""
    ASKED = "asked"
    """Something waits for an answer; `details` is the ask."""
    RESTARTED = "restarted"
    """A new CLI goes on where the last one was lost; `details` has cause and attempt."""
    STALLED = "stalled"
    """The watchdog has lost patience; `details` has the phase, since when and what came last."""
    LIMIT = "limit"
    """A limit of ours is near or reached; `details` has its name, the figure and the limit."""

    # An enum's own is written in Python, and every entry is looked up by its kind more than once.
    __hash__ = object.__hash__


# Python 3.11 looks an enum's members up at thirty times the price of a name.
PARTIAL = Kind.PARTIAL

NOTHING: JsonObject = MappingProxyType({})
"""Most entries have no details; they share this."""


# Not looked at by the garbage collector: there are many, and none of them can be part of a loop.
class Entry(Struct, gc=False, eq=False):
    """One thing that happened, with its place in the order of things."""

    seq: int
    at: float
    """Seconds since the epoch."""
    kind: Kind
    line: bytes = b""
    turns: tuple[str, ...] = ()
    """The uuids of the prompts that it belongs to."""
    details: JsonObject = NOTHING
    decoded: Message | None = None
    """What `line` says, for as long as somebody may want it.

    What was decoded on arrival learns where it stands when somebody looks: ask for `message`.
    """

    @property
    def message(self) -> Message:
        """What `line` says, decoded when somebody first looks."""
        return message_of(self)


def message_of(entry: Entry) -> Message:
    """The same as a function, for those who read one entry after the other."""
    message = entry.decoded
    if message is None:
        if entry.kind is PARTIAL:
            # Not kept: there are many, and most have one reader.
            return parse_piece(entry.line)
        entry.decoded = message = parse_message(entry.line)
    elif source_of(message) is None:
        message.stands_on(entry.line)
    return message


@dataclass(frozen=True, slots=True)
class Lagged:
    """Stands in a reading of the journal where `lost` entries are gone from memory."""

    lost: int
