"""Jobs of a store, as a program that does not run them sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from steersman import _json
from steersman._uuids import uuid_of
from steersman.errors import SteersmanError
from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet.ports import JobRow, JobSpec, JobState
from steersman.journal import Entry, Kind
from steersman.journal.results import TurnResult
from steersman.journal.text import TextStream
from steersman.journal.value_json import result_from_json
from steersman.options import checks
from steersman.stores import PostgresStore, SqliteStore

WAITS = 30.0
"""Seconds for one wait for a result; it is repeated."""
LAST_ENTRIES = 2.0
"""Seconds that the last entries of a job may take to be stored, after its result."""


class StoredJob:
    """The `JobSource` of a job in a store."""

    def __init__(
        self, engine: DbosEngine, store: SqliteStore | PostgresStore, spec: JobSpec, row: JobRow
    ) -> None:
        self._engine = engine
        self._store = store
        self._spec = spec
        self._row = row

    @property
    def state(self) -> JobState:
        """The state of the job, when it was looked at last."""
        return self._row.state

    @property
    def why(self) -> str:
        """What the job waited for, when it was looked at last."""
        return self._row.why

    async def _look(self, wait: float) -> JobRow:
        found = await self._engine.get(self._spec.id, wait=wait)
        if found is None:
            raise SteersmanError(f"the job {self._spec.key!r} was removed from the store")
        self._row = found
        return found

    async def result(self) -> TurnResult:
        """Wait for the end of the job."""
        while self._row.state != "settled":
            await self._look(WAITS)
        return result_from_json(_json.dumps(self._row.result))

    async def text(self) -> AsyncIterator[str]:
        """Iterate over the text of the main agent, as its entries are stored."""
        stream, has_given = TextStream(), False
        async for entry in self.entries(0):
            if chunk := stream.feed(entry):
                has_given = True
                yield chunk
        if not has_given and (text := (await self.result()).text):
            yield text

    async def entries(self, after: int) -> AsyncIterator[Entry]:
        """Iterate over the entries of the turn until the job is settled, numbered from 1."""
        uuid, number = self._turn, 0
        ended = asyncio.ensure_future(self.result())
        following = self._store.follow(self._spec.conversation)
        try:
            while (entry := await _next(following, ended)) is not None:
                if uuid not in entry.turns:
                    continue
                number += 1
                if number > after:
                    yield _numbered(entry, number)
                if entry.kind is Kind.SETTLED and entry.details.get("outcome") != "parked":
                    return
        finally:
            ended.cancel()
            await following.aclose()

    @property
    def _turn(self) -> str:
        """The uuid of the turn, which follows from the names of the conversation and the job."""
        name = self._spec.conversation
        session = name if checks.UUID.fullmatch(name) else uuid_of("steersman", name)
        return uuid_of(session, self._spec.key)

    async def withdraw(self) -> bool:
        """Cancel the job if no worker has begun it."""
        row = await self._look(0.0)
        return row.state == "queued" and await self._engine.cancel(self._spec.id)

    async def interrupt(self) -> None:
        """Stop the job, whatever it does: it ends as cancelled."""
        if await self._engine.cancel(self._spec.id):
            await self._look(WAITS)


async def _next(following: AsyncIterator[Entry], ended: asyncio.Future[TurnResult]) -> Entry | None:
    """Return the next entry; None if the job has ended and no entry came for a while."""
    wanted: asyncio.Future[Entry] = asyncio.ensure_future(_as_coroutine(following))
    both: set[asyncio.Future[Any]] = {wanted, ended}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not wanted.done():
            await asyncio.wait({wanted}, timeout=LAST_ENTRIES)
        return wanted.result() if wanted.done() else None
    finally:
        if not wanted.done():
            # A generator that still runs cannot be closed.
            wanted.cancel()
            await asyncio.wait({wanted})


async def _as_coroutine(following: AsyncIterator[Entry]) -> Entry:
    return await anext(following)


def _numbered(entry: Entry, number: int) -> Entry:
    import msgspec  # noqa: PLC0415 - loaded with the entries

    return msgspec.structs.replace(entry, seq=number)
