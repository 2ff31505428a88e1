"""`FleetClient`: gives jobs to the workers of a store, and reads what becomes of them."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from steersman import _json
from steersman._prompt_content import prompt_content
from steersman._uuids import uuid_of
from steersman.agent import Prompt
from steersman.errors import SteersmanError, UsageError
from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import Place, place_at
from steersman.fleet.budgets import BudgetPeriod, check_budget, limits_fields
from steersman.fleet.job import Job, check_job
from steersman.fleet.ports import JobRow, JobSpec, JobState
from steersman.journal import Entry, Kind
from steersman.journal.json_form import result_from_json
from steersman.journal.results import TurnResult
from steersman.journal.text import TextStream
from steersman.options import Limits, checks
from steersman.stores import PostgresStore, SqliteStore, StoredBudget, WorkerRow

STATES: tuple[JobState, ...] = ("queued", "running", "parked", "held")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """A fleet over processes at one moment."""

    workers: Sequence[WorkerRow] = ()
    """Also those whose lease has ended, for an hour."""
    jobs: Counter[str] = field(default_factory=Counter[str])
    """How many jobs that have not settled are in which state."""
    holds: Counter[str] = field(default_factory=Counter[str])
    """How many jobs wait for what, in words."""
    budgets: Sequence[StoredBudget] = ()


class FleetClient:
    """The jobs of a store, for programs that only send and read: `FleetClient("sqlite:///...")`.

    It loads no agent and starts no CLI: the workers of the store do. A worker must have been
    started on the store once, because only workers prepare its tables.
    """

    def __init__(self, store: str | Place) -> None:
        self._place = place_at(store) if isinstance(store, str) else store
        self._engine = DbosEngine(self._place)
        self._store = self._place.store()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Jobs are not affected."""
        await self._engine.aclose()
        await self._store.aclose()

    async def send(
        self,
        conversation: str | None,
        prompt: Prompt,
        *,
        key: str | None = None,
        agent: str = "default",
        priority: int = 0,
        budget: str | None = None,
        limits: Limits | None = None,
    ) -> Job:
        """Store a job for the workers and return it.

        The same `key` in the same conversation is the same job; `KeyTaken` is raised for another
        prompt. A `conversation` of None begins a new one. `limits` can only lower those of the
        agent; a budget that the agent requires is used without being named.
        """
        content = prompt_content(prompt)
        check_job(conversation, key, priority, limits)
        checks.non_empty("agent", agent)
        await self._check_agent(agent)
        await self._check_budget(budget)
        spec = JobSpec(
            conversation=conversation or str(uuid.uuid4()),
            prompt=content,
            key=key or f"job {uuid.uuid4()}",
            agent=agent,
            priority=priority,
            budget=budget,
            limits=limits_fields(limits),
        )
        return self._job(await self._engine.submit(spec))

    async def _check_agent(self, agent: str) -> None:
        alive = [each for each in await self._store.fleet.workers() if each.is_alive]
        known = sorted({name for each in alive for name in each.agents})
        # Without a worker it is not known: the job waits.
        if known and agent not in known:
            raise UsageError("agent", agent, f"an agent of a worker: {', '.join(known)}")

    async def _check_budget(self, budget: str | None) -> None:
        if budget is None:
            return
        known = [each.name for each in await self._store.fleet.budgets()]
        if budget not in known:
            allowed = "a budget of this store" + (f": {', '.join(known)}" if known else "")
            hint = f"first call client.budget({budget!r}, usd=..., per=...)"
            raise UsageError("budget", budget, allowed, hint=hint)

    def _job(self, row: JobRow) -> Job:
        return Job(StoredJob(self._engine, self._store, row.spec, row), row.spec)

    async def job(self, id_: str) -> Job | None:
        """Return a job by its id; None if there is none."""
        row = await self._engine.get(id_)
        return None if row is None else self._job(row)

    async def jobs(
        self,
        *,
        conversation: str | None = None,
        states: Sequence[JobState] = (),
        most: int = 1000,
    ) -> list[JobRow]:
        """Return the rows of jobs, the oldest first."""
        return await self._engine.list(conversation=conversation, states=states, most=most)

    async def cancel(self, id_: str) -> bool:
        """End a job as cancelled. Returns False if it is settled, or not there."""
        row = await self._engine.get(id_)
        if row is None or not await self._engine.cancel(id_):
            return False
        if row.state != "running":
            await self._store.fleet.settle(id_, 0.0)
        return True

    async def budget(self, name: str, *, usd: float, per: BudgetPeriod) -> None:
        """Set what the jobs with `budget=name` may cost in a day, a month or ever."""
        check_budget(name, usd, per)
        await self._store.fleet.define(name, usd, per)

    async def status(self) -> StoreStatus:
        """Return who works, which jobs wait for what, and what budgets have left."""
        rows = await self._engine.list(states=STATES, most=100_000)
        fleet = self._store.fleet
        return StoreStatus(
            workers=await fleet.workers(),
            jobs=Counter(row.state for row in rows),
            holds=Counter(f"{row.state}: {row.why}" for row in rows if row.why),
            budgets=await fleet.budgets(),
        )

    async def drain(self, worker: str | None = None) -> int:
        """Ask a worker, or all, to drain and end. Returns how many were asked."""
        return await self._store.fleet.set_state(worker, "asked")


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
