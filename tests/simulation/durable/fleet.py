"""Workers of a fleet in the world of durable work: the real worker, segments and code of a job.

Only the engine is played. It keeps what its database would: jobs, whose they are, and what each
step of their code has returned. The code gets that again when another worker runs it.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

from steersman import Agent
from steersman._json import JsonDict, JsonObject
from steersman.errors import LeaseLost
from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.places import Place
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.jobs import run_job
from steersman.fleet.ports import Engine, JobRow, JobSpec, JobState, Segment, SegmentEnd
from steersman.fleet.worker import Worker
from steersman.inbox.stored import StoredInbox
from steersman.ports import Conversation
from steersman.stores._sql.fleet import FleetTable
from steersman.stores._sql.journals import StoredJournal
from steersman.stores._sql.work import WorkTable
from tests.simulation.durable.world import LEASE, Process

LOOKS = 0.2
"""Virtual seconds between two looks of an engine."""
MEMORY = 1024 * 1024


@dataclass
class JobLog:
    """What the database of the engines keeps."""

    jobs: dict[str, JobSpec] = field(default_factory=dict[str, JobSpec])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    """Which worker runs the code of a job."""
    ends: dict[tuple[str, int], SegmentEnd] = field(
        default_factory=dict[tuple[str, int], SegmentEnd]
    )
    messages: dict[str, list[JsonObject]] = field(
        default_factory=lambda: defaultdict[str, list[JsonObject]](list)
    )
    waits: dict[str, list[JsonDict | None]] = field(
        default_factory=lambda: defaultdict[str, list[JsonDict | None]](list)
    )
    """What each wait of the code of a job has returned."""
    sent: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    results: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    def submit(self, *specs: JobSpec) -> None:
        self.jobs |= {each.id: each for each in specs}

    @property
    def next_jobs(self) -> list[JobSpec]:
        """The first unsettled job of each conversation, if no worker has it."""
        first: dict[str, JobSpec] = {}
        for id_, spec in self.jobs.items():
            if id_ not in self.results:
                first.setdefault(spec.conversation, spec)
        return [each for each in first.values() if each.id not in self.owners]


class WorkerProcess:
    """A process that runs one worker, as `steersman worker` does."""

    def __init__(self, process: Process, log: JobLog, agent: Agent, park_after: float) -> None:
        self.process = process
        self.worker = Worker(
            cast("Place", _StorePlace(process)),
            {"default": agent},
            slots=2,
            lease=LEASE,
            park_after=park_after,
            drain_timeout=0.0,
            rhythm=Rhythm(queue=LOOKS),
            make_engine=lambda _: cast("DbosEngine", _WorkerEngine(process, log)),
        )

    async def run(self) -> None:
        try:
            await self.worker.run()
        except LeaseLost:
            # Others have its jobs: the process ends at once.
            self.process.kill()


@dataclass(frozen=True)
class _StorePlace:
    process: Process

    @property
    def path(self) -> Path:
        return self.process.world.path

    def store(self) -> _Store:
        return _Store(self.process)


@dataclass(frozen=True)
class _Store:
    """The store of a process."""

    process: Process

    def inbox(self) -> StoredInbox:
        return self.process.inbox

    def ready(self) -> AsyncGenerator[Conversation]:
        return self.process.store.ready()

    def sink(self, conversation: str) -> StoredJournal:
        return self.process.store.sink(conversation, memory=MEMORY)

    @property
    def work(self) -> WorkTable:
        return self.process.store.work

    @property
    def fleet(self) -> FleetTable:
        return self.process.store.fleet

    async def aclose(self) -> None:
        """Leave the database: it ends with its process."""


class _WorkerEngine:
    """The engine of one worker, and its runner."""

    faults: dict[str, str] = {}
    rhythm = Rhythm(queue=LOOKS)

    def __init__(self, process: Process, log: JobLog) -> None:
        self.process, self.log = process, log
        self.name = ""
        self.segments: dict[str, asyncio.Task[SegmentEnd]] = {}
        self.segment: Segment | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._taking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.stop_taking()
        for each in self._tasks.values():
            each.cancel()

    @property
    def runner(self) -> Self:
        return self

    async def start(self, segment: Segment, *, worker: str, **_more: Any) -> None:
        self.segment, self.name = segment, worker
        self._taking = asyncio.ensure_future(self._take())

    def stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()

    async def written(self, _timeout: float) -> None:
        """Return: ends are stored at once."""

    async def _take(self) -> None:
        while True:
            await self.in_time()
            for spec in self.log.next_jobs:
                self.log.owners[spec.id] = self.name
                self._tasks[spec.id] = asyncio.ensure_future(self._run(spec))
            await asyncio.sleep(LOOKS)

    async def _run(self, spec: JobSpec) -> None:
        result = await run_job(cast("Engine", _JobRun(self, spec.id)), spec)
        if await self.has(spec.id):
            self.log.results[spec.id] = result

    async def has(self, id_: str) -> bool:
        """Whether the job is still this worker's: what it writes late counts for nothing."""
        await self.in_time()
        return self.log.owners.get(id_) == self.name

    async def in_time(self) -> None:
        """Pass a call to the database, which is that of the store, once it can be reached.

        A call of a dead process never returns.
        """
        await asyncio.sleep(max(self.process.away_until - self.process.world.now, 0.0))
        await self.process.step()

    async def recover(self, worker: str) -> int:
        await self.in_time()
        mine = [id_ for id_, owner in self.log.owners.items() if owner == worker]
        for id_ in mine:
            del self.log.owners[id_]
        return sum(id_ not in self.log.results for id_ in mine)

    async def workers(self) -> set[str]:
        await self.in_time()
        return {*self.log.owners.values()}

    async def get(self, id_: str) -> JobRow | None:
        await self.in_time()
        spec = self.log.jobs.get(id_)
        state: JobState = "settled" if id_ in self.log.results else "running"
        return None if spec is None else JobRow(spec=spec, state=state)

    async def signal(self, id_: str, message: JsonObject, *, once: str) -> None:
        await self.in_time()
        if (id_, once) not in self.log.sent:
            self.log.sent.add((id_, once))
            self.log.messages[id_].append(message)


class _JobRun:
    """What the code of a job calls in one run of it: it gets again what it has got before."""

    def __init__(self, engine: _WorkerEngine, id_: str) -> None:
        self._engine, self._log, self._id = engine, engine.log, id_
        self._waits = itertools.count()

    async def run_segment(self, spec: JobSpec, number: int) -> SegmentEnd:
        engine, step = self._engine, (self._id, number)
        if step not in self._log.ends:
            assert engine.segment is not None
            task = asyncio.ensure_future(_result(engine.segment(spec, number)))
            engine.segments[self._id] = task
            try:
                end = await task
            finally:
                engine.segments.pop(self._id, None)
            await self._keep(lambda: self._log.ends.setdefault(step, end))
        return self._log.ends[step]

    async def wait(self, id_: str, timeout: float) -> JsonDict | None:
        number, had = next(self._waits), self._log.waits[id_]
        until = self._engine.process.world.now + timeout
        while number >= len(had):
            read = sum(each is not None for each in had)
            message = next(iter(self._log.messages[id_][read:]), None)
            if message is None and self._engine.process.world.now < until:
                await asyncio.sleep(LOOKS)
            else:
                found = None if message is None else dict(message)
                await self._keep(functools.partial(had.append, found))
        return had[number]

    async def put_event(self, _id: str, _data: JsonObject) -> None:
        await self._engine.in_time()

    async def _keep(self, write: Callable[[], object]) -> None:
        if not await self._engine.has(self._id):
            # Another worker runs the code of this job.
            await asyncio.get_running_loop().create_future()
        write()


async def _result(work: Awaitable[SegmentEnd]) -> SegmentEnd:
    return await work
