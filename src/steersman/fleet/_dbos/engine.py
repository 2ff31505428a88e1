"""The port `Engine` on DBOS: rows for every process, and a runner for workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

from steersman._json import JsonDict, JsonObject
from steersman.errors import UsageError
from steersman.fleet._dbos.job_table import DbosJobs
from steersman.fleet._dbos.places import Place
from steersman.fleet._dbos.runner import Rhythm, Runner
from steersman.fleet.jobs import run_job
from steersman.fleet.ports import JobEvent, JobRow, JobSpec, JobState, Segment, SegmentEnd


class DbosEngine:
    """Jobs in a SQLite file or a PostgreSQL. Without `start` it only sends and looks."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._jobs = DbosJobs(place)
        self._runner: Runner | None = None

    async def start(
        self,
        segment: Segment,
        *,
        worker: str,
        slots: int,
        rhythm: Rhythm | None = None,
        ended: Callable[[JobSpec], Awaitable[None]] | None = None,
    ) -> None:
        """Be a worker of this name: take jobs, and run segments on slots.

        `ended` is called when the code of a job has ended, perhaps more than once.
        """
        runner = Runner(self.place, self._jobs, worker, slots, rhythm)

        async def code(spec: JobSpec) -> JsonObject:
            result = await run_job(self, spec)
            if ended is not None:
                await ended(spec)
            return result

        # Jobs that waited begin while it starts, and their code calls this engine.
        self._runner = runner
        try:
            await runner.start(code, segment)
        except BaseException:
            self._runner = None
            raise

    @property
    def runner(self) -> Runner:
        """What runs jobs here. Raises `UsageError` in a process that is no worker."""
        if self._runner is None:
            raise UsageError("engine", "one that only sends", "that of a worker")
        return self._runner

    @property
    def faults(self) -> Mapping[str, str]:
        """The background tasks of a worker's engine that fail now, with their errors."""
        return {} if self._runner is None else self._runner.background.faults

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop. Jobs that were here belong to this worker until `recover` is called."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.aclose()
        await self._jobs.aclose()

    async def submit(self, spec: JobSpec) -> JobRow:
        """Store a job and return its row."""
        return await self._jobs.submit(spec)

    async def get(self, id_: str, *, wait: float = 0.0) -> JobRow | None:
        """Return a job."""
        return await self._jobs.get(id_, wait=wait)

    async def list(
        self, *, conversation: str | None = None, states: Sequence[JobState] = (), most: int = 1000
    ) -> list[JobRow]:
        """Return jobs, the oldest first."""
        return await self._jobs.list(conversation=conversation, states=states, most=most)

    async def cancel(self, id_: str) -> bool:
        """Have a job end as cancelled."""
        return await self._jobs.cancel(id_)

    async def signal(self, id_: str, message: JsonObject, *, once: str | None = None) -> None:
        """Give a message to a job."""
        await self._jobs.signal(id_, message, once=once)

    async def wait(self, id_: str, timeout: float) -> JsonDict | None:
        """Return the next message to a job, in its code."""
        return await self.runner.wait(id_, timeout)

    async def put_event(self, id_: str, data: JsonObject) -> None:
        """Add an event to a job, in its code."""
        await self.runner.put_event(id_, data)

    async def read_events(self, id_: str, after: int = 0) -> Sequence[JobEvent]:
        """Return the events of a job."""
        return await self._jobs.read_events(id_, after)

    async def run_segment(self, spec: JobSpec, number: int) -> SegmentEnd:
        """Run a segment on a slot of any worker, in the code of the job."""
        return await self.runner.run_segment(spec, number)

    async def workers(self) -> Sequence[str]:
        """Return the workers that jobs and segments name, dead or alive."""
        return await self._jobs.workers()

    async def recover(self, worker: str) -> int:
        """Give what a dead worker had to others."""
        return await self.runner.recover(worker)
