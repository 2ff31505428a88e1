"""The turns of a session as rows of a store: written before a prompt is sent, and when it settles.

A prompt is sent only if its row is stored. How a turn ended is written in the background, in order,
and again if the store fails, until the session ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from steersman._background import BackgroundTasks
from steersman.durable.leases import SessionWork
from steersman.errors import LeaseLost, StoreError
from steersman.ports import StoredTurn

LONGEST_PAUSE = 1.0
"""Seconds at most until a write that failed is made again."""
CLOSING = 2.0
"""Seconds that the last writes may take when the session ends."""

Report = Callable[[str, BaseException | str], None]


@dataclass(frozen=True, slots=True)
class _Ending:
    session: str
    uuid: str
    state: str
    outcome: str
    since: float


class DurableTurns:
    """Writes the rows of one session."""

    def __init__(
        self,
        work: SessionWork,
        session_id: Callable[[], str | None],
        report: Report,
        background: BackgroundTasks,
    ) -> None:
        self._work = work
        self._session_id = session_id
        self._report = report
        self._background = background
        self._since = 0.0
        """When the CLI began that runs now."""
        self._begun: dict[str, str] = {}
        """The conversation of each turn that has a row and has not settled."""
        self.endings: deque[_Ending] = deque()
        """What is left to write about turns that have settled."""
        self._writing: asyncio.Task[None] | None = None
        self._has_failed = False

    def launched(self, at: float) -> None:
        """Begin with another CLI: what the one before it has asked is lost with it."""
        self._since = at

    async def begin(self, turn: StoredTurn) -> None:
        """Store a turn. Raises `StoreError` or `LeaseLost`; then nothing may be sent.

        A row that may have been written although this failed is settled as cancelled: the caller
        knows that nothing was promised. One whose caller was cancelled is parked if it has a key: a
        turn with a key is promised with its row.
        """
        session, work = self._session_id() or "", self._work
        is_new = work.before is None or all(each.uuid != turn.uuid for each in work.before.turns)
        try:
            await work.store.begin(session, work.token, turn)
        except BaseException as error:
            if is_new and not isinstance(error, LeaseLost):
                self._begun[turn.uuid] = session
                is_promised = turn.key is not None and isinstance(error, asyncio.CancelledError)
                self.settled(turn.uuid, "parked" if is_promised else "cancelled")
            raise
        self._begun[turn.uuid] = session

    def settled(self, uuid: str, outcome: str) -> None:
        """Write how a turn has ended, in the background."""
        session = self._begun.pop(uuid, None)
        if session is not None:
            state = "parked" if outcome == "parked" else "settled"
            self.endings.append(_Ending(session, uuid, state, outcome, self._since))
            self._write()

    async def close(self) -> None:
        """Write what is left, for a few seconds at most."""
        if self.endings:
            self._write()
        if self._writing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await asyncio.shield(self._writing)
            self._writing.cancel()
        if self.endings:
            self._failed(StoreError("the store has not confirmed how the last turns ended"))

    def _write(self) -> None:
        self._writing = self._background.keep(
            "the ends of turns of the conversation",
            self._write_all,
            meanwhile="the store has these turns as unsettled",
            longest=LONGEST_PAUSE,
        )

    async def _write_all(self) -> None:
        while self.endings:
            each = self.endings[0]
            try:
                await self._work.store.settle(
                    each.session,
                    self._work.token,
                    each.uuid,
                    each.state,
                    each.outcome,
                    since=each.since,
                )
            except LeaseLost as error:
                self._failed(error)
            except Exception as error:
                self._failed(error)
                raise
            self.endings.popleft()

    def _failed(self, error: BaseException) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._report("store", error)
