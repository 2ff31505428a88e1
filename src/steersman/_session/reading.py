"""What callers read of a session: its messages, its lines, its journal and its turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from typing import TypeVar

from steersman._session.cli import HOW_TO_START, NOT_STARTED
from steersman._session.parts import Parts
from steersman._session.readers import JournalReader, StoredReader, TurnReader
from steersman._session.turn import LINES, TurnSession
from steersman.errors import ChannelClosed, Described, UsageError
from steersman.journal import Entry, Kind, Lagged
from steersman.journal.journal import message_of
from steersman.messages.parsing import Message
from steersman.messages.turns import User
from steersman.options import checks
from steersman.options.own_flags import REPLAYS

T = TypeVar("T")


def _is_number_of_entry(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


_check_after = checks.must_be("a sequence number, 0 or more", _is_number_of_entry)


def _checked_kinds(given: Collection[Kind]) -> frozenset[Kind]:
    for kind in given:
        if not isinstance(kind, Kind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("kinds", kind, "members of Kind, such as {Kind.MESSAGE}")
    return frozenset(given)


def _message_or_replay(entry: Entry) -> Message | None:
    """Return a message, or a prompt that the CLI repeats, but no other bookkeeping."""
    message = message_of(entry)
    is_shown = entry.kind is not Kind.BOOKKEEPING or (
        isinstance(message, User) and message.is_replay
    )
    return message if is_shown else None


class SessionReaders:
    """Makes the readers of one session. Its turns use it too."""

    def __init__(self, session: TurnSession, parts: Parts) -> None:
        self.session = session
        """The session, as callers see it."""
        self._parts = parts
        self.journal = parts.journal.journal
        self._signal = parts.journal.signal
        options = parts.options
        shown = {Kind.MESSAGE, Kind.PARTIAL} if options.include_partial_messages else {Kind.MESSAGE}
        replays = REPLAYS in options.extra_args
        self.shown = frozenset(shown | {Kind.BOOKKEEPING} if replays else shown)
        """Kinds of journal entries with messages for the caller, under these options."""
        self.message_of: Callable[[Entry], Message | None] = (
            _message_or_replay if replays else message_of
        )
        """Returns the message of an entry of these kinds; None if it is not for the caller."""

    def messages(self, after: int) -> AsyncIterator[Message]:
        """Iterate over the messages after entry number `after`."""
        shown, message_of = self.shown, self.message_of
        after = self._from_this_session(after)
        return JournalReader(
            self.journal,
            self._signal,
            lambda entry: message_of(entry) if entry.kind in shown else None,
            after=after,
            conversation_only=True,
        )

    def lines(self, after: int) -> AsyncIterator[bytes]:
        """Iterate over the lines of the conversation as received."""
        after = self._from_this_session(after)
        return JournalReader(
            self.journal,
            self._signal,
            lambda entry: entry.line if entry.kind in LINES else None,
            after=after,
            conversation_only=True,
        )

    def entries(
        self, after: int | None, kinds: Collection[Kind] | None = None
    ) -> AsyncIterator[Entry | Lagged]:
        """Iterate over all entries, with a `Lagged` for those no longer in memory or in a sink.

        `None`: all entries of this session; 0: also those of earlier sessions.
        """
        after = self._from_this_session(0) if after is None else self._checked(after)
        chosen = None if kinds is None else _checked_kinds(kinds)
        stored = self._parts.journal.stored
        return StoredReader(self.journal, self._signal, stored, after=after, kinds=chosen)

    def redacted(self, line: bytes) -> bytes:
        """Return `line` without the secrets that the CLI was given; unchanged if it has none."""
        if not isinstance(line, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("line", Described.kind_of(line), "bytes: one line of JSON")
        return self._parts.slot.redact(line)

    def of_turn(
        self, uuid: str, kinds: frozenset[Kind], pick: Callable[[Entry], T | None], after: int
    ) -> AsyncIterator[T]:
        """Iterate over what `pick` returns for a turn's entries, until the turn settles."""
        self._check_loop()
        return TurnReader(self.journal, self._signal, pick, after=after, uuid=uuid, kinds=kinds)

    def check_may_wait(self) -> None:
        """Raise `UsageError` if the caller cannot wait for a turn: it would wait for ever."""
        self._parts.slot.home.check()
        cli = self._parts.slot.running
        if cli is not None and cli.tasks.is_answering:
            raise UsageError(
                "turn",
                Described("a turn of the session that waits for this tool, hook or approver"),
                "a turn of another session, or one that has settled",
                hint="return first; the program that sent the prompt can wait for its turn",
            )

    def _checked(self, after: int) -> int:
        _check_after("after", after)
        if not self.journal.last_seq:
            raise ChannelClosed(NOT_STARTED, hint=HOW_TO_START)
        self._check_loop()
        return after

    def _from_this_session(self, after: int) -> int:
        """Return `after`, or the number before this session if that is greater."""
        return max(self._checked(after), self.journal.began_after)

    def _check_loop(self) -> None:
        """Refuse a reader that would wait in another event loop."""
        if not self._parts.status.phase.is_over:
            self._parts.slot.home.check()
