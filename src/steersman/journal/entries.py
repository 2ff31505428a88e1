"""The entries of a journal: one for each line, decision and change of state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import force_setattr

from steersman._json import JsonObject
from steersman._struct import DECODE_ERRORS, SOURCE, source_of
from steersman.messages.parsing import Message, decode_stream_event, parse_message
from steersman.messages.turns import set_line


class Kind(Enum):
    """The kind of an entry."""

    MESSAGE = "message"
    """A message of the CLI that `session.messages()` yields."""
    PARTIAL = "partial"
    """A `stream_event`: a part of a message that is still being written."""
    BOOKKEEPING = "bookkeeping"
    """A line that steersman itself asked for: replayed prompts, lifecycles, session states."""
    CONTROL = "control"
    """A control line from the CLI."""
    SENT = "sent"
    """A line that was sent to the CLI, with known secrets redacted."""
    TAKEN_UP = "taken_up"
    """The CLI continues with `calls` (in `details`) that none of its messages has begun: those of a
    turn of an earlier session, which it continues by itself, or of a turn before a restart."""
    NOISE = "noise"
    """A line on stdout that is not JSON."""
    OVERSIZE = "oversize"
    """A line that was too long and was dropped; `details` has its size, `line` its beginning."""
    PHASE = "phase"
    """The state of the session changed; `details` has `before` and `after`."""
    SETTLED = "settled"
    """A turn has ended; `details` has the outcome, `cost_usd` and `model_usage`.

    `unreported` has the tokens of messages that no result counts, see `TurnResult.unreported`.
    """
    FAULT = "fault"
    """A callback of the host program failed; `details` has `where` and `error`."""
    TOOL_FAILED = "tool_failed"
    """A tool in this process raised; `details` has its name and the type of the error."""
    SERVER = "server"
    """The state of an MCP server changed; `details` has name, status and error."""
    DECIDED = "decided"
    """A decision about a tool call was made; `details` has who decided, what and why.

    If it is the answer to an ask, `details["id"]` is the id of the ask.
    """
    UNDECIDED = "undecided"
    """A tool ran although no decision about it was recorded."""
    ASKED = "asked"
    """An ask waits for an answer; `details` is the ask, which `decisions.ask_of` reads."""
    RESTARTED = "restarted"
    """A new CLI has replaced one that was lost; `details` has cause and attempt."""
    STALLED = "stalled"
    """The watchdog found the CLI silent; `details` has phase, since when and the last message."""
    LIMIT = "limit"
    """A limit from `Limits` is near or reached; `details` has its name, value and maximum."""

    # `Enum.__hash__` is written in Python, and each entry's kind is hashed more than once.
    __hash__ = object.__hash__


# In Python 3.11 looking up a member of an enum takes thirty times as long as a global name.
PARTIAL = Kind.PARTIAL

NOTHING: JsonObject = MappingProxyType({})
"""The empty details that most entries share."""


# gc=False: there are many entries, and none of them can be part of a reference cycle.
class Entry(Struct, gc=False, eq=False):
    """One event of a session, numbered in order."""

    seq: int
    at: float
    """Seconds since the epoch; in a session never before the entry with the number before it."""
    kind: Kind
    line: bytes = b""
    turns: tuple[str, ...] = ()
    """The uuids of the prompts that this entry belongs to."""
    details: JsonObject = NOTHING
    decoded: Message | None = None
    """The decoded `line`, while it is kept. Read `message` instead.

    A message that was decoded on arrival has no `raw` until `message` has linked it to its line.
    """

    @property
    def message(self) -> Message:
        """The message on `line`, decoded at the first reading."""
        return message_of(self)


def message_of(entry: Entry) -> Message:
    """Return `entry.message`. As a function it is faster in a loop over entries."""
    message = entry.decoded
    if entry.kind is PARTIAL:
        # Not kept: partial messages are many, and most have one reader.
        if message is None:
            try:
                message = decode_stream_event(entry.line)
            except DECODE_ERRORS:
                return parse_message(entry.line)
        force_setattr(message, SOURCE, entry.line)
    elif message is None:
        entry.decoded = message = parse_message(entry.line)
    elif source_of(message) is None:
        set_line(message, entry.line)
    return message


@dataclass(frozen=True, slots=True)
class Lagged:
    """Takes the place of `lost` entries that are no longer in memory."""

    lost: int
