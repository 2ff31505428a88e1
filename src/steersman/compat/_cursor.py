"""What has come and was not read yet: one cursor per client, shared by all its readers.

Reads the journal of the session, which keeps lines as received, so that each line is decoded once,
when it is read. Knows which prompts still owe a `ResultMessage`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from steersman.compat.parsing import message_from_line
from steersman.compat.types import ResultMessage
from steersman.errors import ReaderLagged
from steersman.journal import Entry, Kind, Lagged
from steersman.journal.journal import CONVERSATION

if TYPE_CHECKING:
    from steersman._session.session import Session
    from steersman._session.turn import Turn
    from steersman.compat.types import Message

BOOKKEEPING, SETTLED = Kind.BOOKKEEPING, Kind.SETTLED

IS_USER = b'"type":"user"'
"""What a replayed prompt has, unlike other lines of bookkeeping."""

IS_STATE = b'"subtype":"session_state_changed"'
"""What a line has that reports whether the CLI works or waits."""

LOCAL_OUTPUT = b'"content":"<local-command-std'
"""What the output of a command that the CLI ran by itself has."""

BEGINNING = 300
"""Bytes of a line in which these are looked for."""


@runtime_checkable
class _HasReady(Protocol):
    def ready(self) -> list[Entry | Lagged]:
        """Return the entries that are there, without waiting."""
        ...


class Cursor:
    """The messages of one session, each of which one reader gets."""

    def __init__(
        self, session: Session, *, replays_prompts: bool = False, reports_states: bool = False
    ) -> None:
        self._session = session
        self._reader: AsyncIterator[Entry | Lagged] = session.journal(kinds=CONVERSATION)
        self._shown = frozenset(
            {Kind.MESSAGE, Kind.PARTIAL}
            if session.options.include_partial_messages
            else {Kind.MESSAGE}
        )
        self._shows_replays = replays_prompts
        self._shows_states = reports_states
        self._here: deque[Entry | Lagged] = deque()
        self._filling = asyncio.Lock()
        self._fetched = 0
        """How often entries were fetched."""
        self._owed: dict[str, Turn] = {}
        """Prompts for which no reader has got a `ResultMessage`, by uuid."""
        self._settled: set[str] = set()
        """Those of them that have settled, as far as the journal was read."""
        self._is_fresh = False
        """Whether the last entry was a result: the first turn that settles with it has it."""
        self.last_result: ResultMessage | None = None
        """The result that was read last."""

    def owes(self, turn: Turn) -> None:
        """Expect a result for a prompt that was sent."""
        self._owed[turn.uuid] = turn
        if turn.is_settled:
            self._settled.add(turn.uuid)

    def take(self) -> Message | None:
        """Return the next message that is there, or None; waits for nothing."""
        here, shown = self._here, self._shown
        while here:
            entry = here.popleft()
            if isinstance(entry, Lagged):
                raise ReaderLagged(entry.lost)
            if entry.kind in shown:
                self._is_fresh = False
                message = message_from_line(entry.line)
                if message is not None:
                    if type(message) is ResultMessage:
                        self.last_result = message
                        self._is_fresh = True
                    return message
            elif entry.kind is SETTLED:
                self._settle(entry)
            elif entry.kind is BOOKKEEPING and self._is_shown_bookkeeping(entry.line):
                message = message_from_line(entry.line)
                if message is not None:
                    return message
        return None

    def _is_shown_bookkeeping(self, line: bytes) -> bool:
        """Whether a line is a prompt or a state that the caller wants, or the output of a command.

        The CLI sends the output of commands such as `/compact` without being asked to.
        """
        if self._shows_states and IS_STATE in line[:BEGINNING]:
            return True
        if self._shows_replays and IS_USER in line[:BEGINNING]:
            return True
        return LOCAL_OUTPUT in line[:BEGINNING] and IS_USER in line[:BEGINNING]

    def _settle(self, entry: Entry) -> None:
        """Count the result before this entry as that of the first prompt that settles with it.

        The others shared its turn: nothing more comes for them.
        """
        for uuid in entry.turns:
            if self._is_fresh and self._owed.pop(uuid, None) is not None:
                self._is_fresh = False
            elif uuid in self._owed:
                self._settled.add(uuid)

    def take_settled(self) -> Turn | None:
        """Return a prompt that has settled although no reader has got a result for it.

        It shared the turn of another prompt, or has no result. Returns None if more may come:
        something was not read or has not settled, or nothing is owed.
        """
        owed, settled = self._owed, self._settled
        if not owed or self._here or self._session.phase.is_over:
            return None
        if not settled.issuperset(tuple(owed)):
            return None
        uuid = next(iter(owed))
        settled.discard(uuid)
        return owed.pop(uuid)

    async def fill(self) -> bool:
        """Wait until there may be something to take; returns whether the session continues.

        Called in the event loop of the session.
        """
        fetched = self._fetched
        async with self._filling:
            if self._fetched != fetched:
                # What another reader has fetched can be taken, or shows that no more comes.
                return True
            try:
                self._here.append(await anext(self._reader))
            except StopAsyncIteration:
                return False
            if isinstance(self._reader, _HasReady):
                self._here.extend(self._reader.ready())
            self._fetched += 1
        return True
