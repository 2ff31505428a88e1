"""A worker of a fleet: a process that runs jobs of a store, and takes over those of dead workers.

Its lease is a row in the store. A worker that cannot renew it stops, because others have its jobs
then. What it wrote late counts for nothing: the engine and the leases of conversations see to it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from steersman._background import BackgroundTasks
from steersman.errors import LeaseLost, StoreError
from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import Place
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.answers import AnswerSignals
from steersman.fleet.governor import Governor
from steersman.fleet.jobs import answered
from steersman.fleet.ports import job_id
from steersman.fleet.segments import PARKING, StoreSegments
from steersman.stores import WorkerRow

if TYPE_CHECKING:
    from steersman.agent import Agent
    from steersman.ports import Conversation
    from steersman.stores import PostgresStore, SqliteStore
    from steersman.stores._sql.fleet import FleetTable

log = logging.getLogger("steersman.fleet")

LEASE = 15.0
"""Seconds after which the jobs of a worker that was killed are given to others."""
STARTING = 60.0
"""The first lease: the event loop is blocked while the engine prepares its tables."""
RETRY = 0.5
"""Seconds until a lease that could not be renewed is tried again."""
LOOKS = 1.0
"""Seconds between two looks for dead workers, at most."""
FULL_LOOK = 60.0
"""Seconds between two looks at all jobs for workers that have no row."""
FORGOTTEN = 3600.0
"""Seconds after which the row of a dead worker is removed."""


def worker_name() -> str:
    """Return a name that no other worker has: two with one name would take each other's jobs."""
    return f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"


class Worker:
    """Runs jobs of a store until it is drained. There is one in a process."""

    def __init__(  # noqa: PLR0913 - each is an option of the command
        self,
        place: Place,
        agents: Mapping[str, Agent],
        *,
        slots: int = 4,
        lease: float = LEASE,
        park_after: float = 1.0,
        drain_timeout: float = 30.0,
        governor: Governor | None = None,
        rhythm: Rhythm | None = None,
        make_engine: Callable[[Place], DbosEngine] = DbosEngine,
    ) -> None:
        self.name = worker_name()
        self._place = place
        self._agents = agents
        self._slots = slots
        self._lease = lease
        self._park_after = park_after
        self._governor = governor
        self._rhythm = rhythm
        self._make_engine = make_engine
        self._background = BackgroundTasks(log)
        self._engine: DbosEngine | None = None
        self._segments: StoreSegments | None = None
        self._drain = asyncio.Event()
        self._timeout = drain_timeout
        self.is_ready = asyncio.Event()
        """Set once it takes jobs."""

    def drain(self) -> None:
        """Take no more jobs; current turns finish, or are parked after `drain_timeout` seconds."""
        self._drain.set()

    @property
    def faults(self) -> Mapping[str, str]:
        """The background tasks that fail now, with their errors; they are started again."""
        engine: Mapping[str, str] = {} if self._engine is None else self._engine.faults
        sessions = {} if self._segments is None else self._segments.faults
        return {**self._background.faults, **engine, **sessions}

    async def run(self) -> None:
        """Work until it is drained.

        Raises `LeaseLost` if other workers have its jobs now: then the process must end at once.
        """
        async with AsyncExitStack() as stack:
            store: SqliteStore | PostgresStore = self._place.store()
            stack.push_async_callback(store.aclose)
            fleet = store.fleet
            row = WorkerRow(
                self.name, platform.node(), os.getpid(), self._slots, tuple(self._agents)
            )
            await fleet.join(row, max(self._lease, STARTING))
            segments = self._segments = StoreSegments(
                self._agents,
                store,
                slots=self._slots,
                lease=self._lease,
                park_after=self._park_after,
                is_shared=self._place.path is None,
                governor=self._governor,
            )
            stack.push_async_callback(segments.aclose)
            engine = await stack.enter_async_context(self._make_engine(self._place))
            self._engine = engine
            try:
                await self._work(engine, segments, store)
            except LeaseLost:
                # Nothing is closed: what the engine would write now belongs to other workers.
                stack.pop_all()
                raise
            await engine.recover(self.name)
            await fleet.leave(self.name)

    async def _work(
        self, engine: DbosEngine, segments: StoreSegments, store: SqliteStore | PostgresStore
    ) -> None:
        fleet = store.fleet
        await engine.start(
            segments.run,
            worker=self.name,
            slots=self._slots,
            rhythm=self._rhythm,
            ended=segments.release,
        )
        background = self._background
        renewing = asyncio.Task(self._renew(fleet))
        drained = asyncio.Task(self._drained(engine, segments))
        try:
            background.keep(
                "the take-over of jobs",
                DeadWorkers(engine, fleet, self.name, min(LOOKS, self._lease / 4)).take_over,
                meanwhile="jobs of dead workers wait",
            )
            signals = AnswerSignals(store.ready, partial(_signal, engine, store))
            signals.keep_in(background, "the answers of the store")
            self.is_ready.set()
            await asyncio.wait({renewing, drained}, return_when=asyncio.FIRST_COMPLETED)
            if renewing.done():
                renewing.result()
            await drained
        finally:
            await background.aclose()
            for task in (drained, renewing):
                task.cancel()
            await asyncio.gather(drained, renewing, return_exceptions=True)

    async def _renew(self, fleet: FleetTable) -> None:
        """Renew the lease until it is lost, which raises `LeaseLost`."""
        until = time.monotonic() + self._lease
        while True:
            begun, pause = time.monotonic(), self._lease / 3
            try:
                async with asyncio.timeout(max(0.01, until - begun)):
                    faults = [f"{name}: {words}" for name, words in self.faults.items()]
                    state = await fleet.renew(self.name, self._lease, faults)
            except (StoreError, TimeoutError) as error:
                log.warning("the lease of this worker cannot be renewed: %s", error)
                state, pause = "unknown", min(pause, RETRY)
            else:
                until = begun + self._lease
            if state is None or time.monotonic() >= until:
                raise LeaseLost(self.name, "the worker could not renew it in time")
            if state == "asked":
                self.drain()
            await asyncio.sleep(pause)

    async def _drained(self, engine: DbosEngine, segments: StoreSegments) -> None:
        """Wait until a drain was asked for, and carry it out."""
        await self._drain.wait()
        runner = engine.runner
        runner.stop_taking()
        await segments.drain(self._timeout)
        # One that has just been taken is given back.
        if running := list(runner.segments.values()):
            await asyncio.wait(running, timeout=PARKING)
        await runner.written(PARKING)
        # A look at the queues that had begun may still take something.
        await asyncio.sleep(2 * runner.rhythm.queue)
        # The code of the jobs is continued elsewhere.
        await engine.recover(self.name)


class DeadWorkers:
    """Gives the jobs of dead workers to others."""

    def __init__(self, engine: DbosEngine, fleet: FleetTable, name: str, pause: float) -> None:
        self._engine = engine
        self._fleet = fleet
        self._name = name
        self._pause = pause
        self._looked = 0.0
        """When all jobs were looked at last."""

    async def take_over(self) -> None:
        """Look for dead workers until cancelled. Raises `StoreError`."""
        while True:
            await self._look()
            await asyncio.sleep(self._pause)

    async def _look(self) -> None:
        workers = await self._fleet.workers()
        alive = {each.worker for each in workers if each.is_alive}
        dead = {each.worker for each in workers if not each.is_alive}
        if time.monotonic() - self._looked > FULL_LOOK or not self._looked:
            dead |= set(await self._engine.workers()) - alive
            self._looked = time.monotonic()
        failed: list[StoreError] = []
        for name in dead - {self._name}:
            try:
                count = await self._engine.recover(name)
            except StoreError as error:
                # The jobs of the others are not held up by these.
                failed.append(error)
            else:
                if count:
                    log.warning("took over %d jobs and segments of %s", count, name)
        if failed:
            # The rows of the dead stay, so that they are found again.
            self._looked = 0.0
            raise failed[0]
        for each in workers:
            if each.left < -FORGOTTEN:
                await self._fleet.leave(each.worker)


async def _signal(
    engine: DbosEngine, store: SqliteStore | PostgresStore, conversation: Conversation
) -> None:
    work = store.work
    for turn in conversation.turns:
        if turn.key is None:
            continue
        id_ = job_id(conversation.key, turn.key)
        for ask in await work.asks_of(conversation.session, turn.uuid):
            if ask.state != "open" and await engine.get(id_) is not None:
                await engine.signal(id_, answered(ask.id), once=ask.id)
