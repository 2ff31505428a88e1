"""The entries of a journal, and the log in memory that forgets the oldest when it is too large."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count, repeat
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
PARTIAL, SETTLED = Kind.PARTIAL, Kind.SETTLED

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


CONVERSATION = frozenset(
    {Kind.MESSAGE, Kind.PARTIAL, Kind.BOOKKEEPING, Kind.SETTLED, Kind.RESTARTED}
)
"""The kinds of entries that a reader of the conversation waits for."""

DEFAULT_MEMORY = 64 * 1024 * 1024
"""Bytes of lines kept in memory."""

# Bytes that an entry needs beside its line, so that many small entries are limited as well.
ENTRY_WEIGHT = 200

WARM = 512 * 1024
"""Bytes of the newest entries that keep their decoded message.

More than one read from the CLI, so a reader that keeps up never decodes a message again.
"""


FIRST_REPORT = 32 * 1024
"""Bytes after which a journal first reports its growth."""


class Journal:
    """Entries in order, numbered from 1, or from where an earlier session ended."""

    def __init__(
        self, memory: int = DEFAULT_MEMORY, on_growth: Callable[[Journal], int] | None = None
    ) -> None:
        """Keep `memory` bytes. `on_growth` returns after how many bytes it is called again."""
        self.memory = memory
        """How many bytes of lines are kept."""
        self._entries: list[Entry] = []
        self._start = 0
        self.forgotten = 0
        """The number of the newest entry that is no longer in memory; 0 if all are."""
        self._total_weight = 0
        """Bytes of all entries ever appended; the next two count parts of the same sum."""
        self._forgotten_weight = 0
        self._cooled_weight = 0
        self._warm_after = self._fresh_after = 0
        self._on_growth = on_growth
        self._wanted = memory
        """Less than `memory` if all journals together are too large, until the next `_tidy`."""
        self._report_at = FIRST_REPORT if on_growth is not None else sys.maxsize
        self._tidy_at = min(memory, WARM, self._report_at)
        """The total weight at which `_tidy` has something to do."""
        self.began_after = 0
        """The number of the last entry of earlier sessions; 0 if there is none."""
        self.last_seq = 0
        """The number of the newest entry; 0 if there is none."""
        self.last_at = 0.0
        """The time of the newest entry."""
        self.last_spoken = 0
        """The number of the newest entry that is part of the conversation."""
        self.last_settled = 0
        """The number of the newest entry that ends a turn."""

    @property
    def kept(self) -> int:
        """How many bytes are kept in memory."""
        return self._total_weight - self._forgotten_weight

    def keep_at_most(self, size: int, *, at_once: bool = True) -> None:
        """Forget the oldest entries until `size` bytes are left.

        Not `at_once`: with the next entry. Only this may be called in another thread than `append`.
        """
        self._wanted = size
        if at_once:
            self._forget()
        else:
            self._tidy_at = 0

    def begin_after(self, seq: int) -> None:
        """Number the first entry `seq` + 1: the entries up to `seq` are those of earlier sessions.

        Must be called before the first `append`.
        """
        self.last_seq = self.began_after = self.forgotten = seq

    def append(
        self,
        at: float,
        kind: Kind,
        line: bytes = b"",
        turns: tuple[str, ...] = (),
        details: JsonObject = NOTHING,
        decoded: Message | None = None,
    ) -> Entry:
        """Append an entry, and forget the oldest ones if the journal grows too large.

        Times never go back: lines that arrive together have the time of their arrival, and what
        was written in between may be later.
        """
        self.last_seq = seq = self.last_seq + 1
        if at < self.last_at:
            at = self.last_at
        else:
            self.last_at = at
        if kind in CONVERSATION:
            self.last_spoken = seq
            if kind is SETTLED:
                self.last_settled = seq
        entry = Entry(seq, at, kind, line, turns, details, decoded)
        self._entries.append(entry)
        self._total_weight = written = self._total_weight + len(line) + ENTRY_WEIGHT
        if written > self._tidy_at:
            self._tidy()
        return entry

    def append_partials(
        self,
        at: float,
        lines: Sequence[bytes],
        turns: tuple[str, ...],
        messages: Sequence[Message] | None = None,
    ) -> list[Entry]:
        """Append `stream_event` lines that arrived together, in a third of the time of `append`.

        `messages` are the decoded lines, if they were decoded.
        """
        seq = self.last_seq
        if at < self.last_at:
            at = self.last_at
        else:
            self.last_at = at
        if len(lines) == 1:
            decoded = None if messages is None else messages[0]
            entries = [Entry(seq + 1, at, PARTIAL, lines[0], turns, NOTHING, decoded)]
            self._total_weight += len(lines[0]) + ENTRY_WEIGHT
        else:
            entries = [
                Entry(number, at, PARTIAL, line, turns, NOTHING, decoded)
                for number, line, decoded in zip(
                    count(seq + 1), lines, repeat(None) if messages is None else messages
                )
            ]
            self._total_weight += sum(map(len, lines)) + len(entries) * ENTRY_WEIGHT
        self._entries += entries
        self.last_seq = self.last_spoken = seq + len(entries)
        if self._total_weight > self._tidy_at:
            self._tidy()
        return entries

    def after(self, seq: int, most: int = 512) -> list[Entry]:
        """Return up to `most` entries after number `seq` that are still in memory."""
        begin = self._start + max(0, seq - self.forgotten)
        return self._entries[begin : begin + most]

    def lost_after(self, seq: int) -> int:
        """Return how many entries after number `seq` are no longer in memory."""
        return max(0, self.forgotten - seq)

    def _tidy(self) -> None:
        self._forget()
        if self._total_weight - self._cooled_weight > WARM:
            self._cool()
        if self._on_growth is not None and self._total_weight >= self._report_at:
            self._report_at = self._total_weight + self._on_growth(self)
        self._tidy_at = min(
            self._forgotten_weight + self.memory, self._cooled_weight + WARM, self._report_at
        )

    def _cool(self) -> None:
        """Drop the decoded messages of older entries, which need more memory than their lines.

        A reader that comes later decodes the lines again.
        """
        count = self._fresh_after - max(self._warm_after, self.forgotten)
        for entry in self.after(self._warm_after, most=max(0, count)):
            if entry.decoded is not None:
                entry.decoded = None
        self._warm_after, self._fresh_after = self._fresh_after, self.last_seq
        self._cooled_weight = self._total_weight

    def _forget(self) -> None:
        most = min(self.memory, self._wanted)
        self._wanted = self.memory
        while self.kept > most and self._start < len(self._entries) - 1:
            self._forgotten_weight += len(self._entries[self._start].line) + ENTRY_WEIGHT
            # Deleting from the front of a list moves all entries; this frees the line at once.
            self._entries[self._start] = _FORGOTTEN
            self._start += 1
            self.forgotten += 1
        if self._start * 2 > len(self._entries):
            del self._entries[: self._start]
            self._start = 0


_FORGOTTEN = Entry(0, 0.0, Kind.NOISE)
