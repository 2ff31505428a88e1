"""The turns of a session as rows of a store: written before a prompt is sent, and when it settles.

A prompt is sent only if its row is stored. How a turn ended is written in the background, in order,
and again if the store fails, until the session ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from steersman._background import BackgroundTasks
from steersman._json import Json
from steersman._session.durable import SessionWork
from steersman.errors import LeaseLost, StoreError
from steersman.ports import StoredAsk, StoredTurn

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
    """Writes the rows of one session. Without a store it does nothing."""

    def __init__(
        self,
        work: SessionWork | None,
        session_id: Callable[[], str | None],
        report: Report,
        background: BackgroundTasks,
    ) -> None:
        self.work = work
        """The rows of the session; None if its inbox is in no store that keeps them."""
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

    async def begin(
        self, uuid: str, key: str | None, content: Json, fields: Mapping[str, Json], when: str
    ) -> None:
        """Store a turn. Raises `StoreError` or `LeaseLost`; then nothing may be sent.

        A row that may have been written although this failed is settled as cancelled: the caller
        knows that nothing was promised. One whose caller was cancelled is withdrawn as `withdrawn`
        does.
        """
        if self.work is None:
            return
        session = self._session_id() or ""
        turn = StoredTurn(uuid, key, content, dict(fields), when)
        is_new = uuid not in self._known
        try:
            await self.work.work.begin(session, self.work.token, turn)
        except BaseException as error:
            if is_new and not isinstance(error, LeaseLost):
                self._begun[uuid] = session
                self.withdrawn(uuid, key if isinstance(error, asyncio.CancelledError) else None)
            raise
        self._begun[uuid] = session

    @property
    def _known(self) -> set[str]:
        """The turns that were not settled when the session began."""
        before = None if self.work is None else self.work.before
        return set() if before is None else {each.uuid for each in before.turns}

    def withdrawn(self, uuid: str, key: str | None) -> None:
        """Settle a turn whose prompt was not sent. One with a key is promised with its row."""
        self.settled(uuid, "cancelled" if key is None else "parked")

    def settled(self, uuid: str, outcome: str) -> None:
        """Write how a turn has ended, in the background."""
        session = self._begun.pop(uuid, None)
        if session is not None:
            state = "parked" if outcome == "parked" else "settled"
            self.endings.append(_Ending(session, uuid, state, outcome, self._since))
            self._write()

    async def unsettled(self) -> list[StoredTurn]:
        """Return the turns of the conversation that are not settled. Raises `StoreError`."""
        session = self._session_id()
        if self.work is None or session is None:
            return []
        return await self.work.work.unsettled(session)

    async def asks_of(self, uuid: str) -> list[StoredAsk]:
        """Return the asks of a turn that wait, or whose answer is unused. Raises `StoreError`."""
        session = self._session_id()
        if self.work is None or session is None:
            return []
        return await self.work.work.asks_of(session, uuid)

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
        assert self.work is not None
        while self.endings:
            each = self.endings[0]
            try:
                await self.work.work.settle(
                    each.session,
                    self.work.token,
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
