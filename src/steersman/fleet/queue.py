"""The jobs of one process: the port `Engine` in memory, on the `Slots` of this process.

Jobs live as long as the process. What makes a turn happen once beyond that is its key, which the
conversation keeps.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from steersman._json import JsonDict, JsonObject
from steersman.errors import KeyTaken, SteersmanError, TurnStopped
from steersman.fleet.holds import Hold
from steersman.fleet.jobs import failed_result, run_job
from steersman.fleet.ports import JobEvent, JobRow, JobSpec, JobState, SegmentEnd
from steersman.fleet.slots import Slots
from steersman.ports import Clock

KEPT = 1000
"""How many settled jobs are kept, with their results."""

QUEUED, RUNNING = Hold("queued", ""), Hold("running", "")

Join = Callable[[], Awaitable[SegmentEnd | None]]
"""Sends a prompt into a turn in progress; returns None if there is none."""


@dataclass(slots=True)
class _Job:
    spec: JobSpec
    created: float
    is_next: bool = False
    join: Join | None = None
    task: asyncio.Task[None] | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    result: JsonObject | None = None
    messages: asyncio.Queue[JsonObject] = field(default_factory=asyncio.Queue[JsonObject])
    once: set[str] = field(default_factory=set[str])
    events: list[JobEvent] = field(default_factory=list[JobEvent])
    has_slot_order: bool = False
    """Whether the scheduler knows best what it does."""
    reported: Hold = QUEUED
    """What the code of the job reported last."""


class JobQueue:
    """Keeps jobs, and runs each on the slots. Jobs of one conversation run in their order."""

    def __init__(
        self,
        slots: Slots,
        *,
        clock: Clock = time.time,
        kept: int = KEPT,
        settled: Callable[[JobSpec, JsonObject], None] = lambda _spec, _result: None,
    ) -> None:
        self.slots = slots
        self._on_settled = settled
        self.sent = 0
        self.has_settled = 0
        self._clock = clock
        self._kept = kept
        self._jobs: dict[str, _Job] = {}
        self._old: deque[str] = deque()
        """Settled jobs, the oldest first."""

    # The port

    async def submit(self, spec: JobSpec) -> JobRow:
        """Store a job and return its row; that of an earlier call if it is the same job."""
        return self.add(spec)

    def add(self, spec: JobSpec, *, is_next: bool = False, join: Join | None = None) -> JobRow:
        """Store a job: before the others of its conversation that wait, or into its turn."""
        known = self._jobs.get(spec.id)
        if known is not None:
            if _asked(known.spec) != _asked(spec):
                raise KeyTaken(spec.key)
            return self._row(known)
        job = self._jobs[spec.id] = _Job(spec, self._clock(), is_next, join)
        self.sent += 1
        job.task = asyncio.Task(self._run(job))
        return self._row(job)

    async def get(self, id_: str, *, wait: float = 0.0) -> JobRow | None:
        """Return a job; None if there is none. Waits up to `wait` seconds until it is settled."""
        job = self._jobs.get(id_)
        if job is None:
            return None
        if wait and not job.settled.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await job.settled.wait()
        return self._row(job)

    async def list(
        self, *, conversation: str | None = None, states: Sequence[JobState] = (), most: int = 1000
    ) -> list[JobRow]:
        """Return jobs, the oldest first; without `states` those of all states."""
        mine = (
            each for each in self._jobs.values() if conversation in (None, each.spec.conversation)
        )
        rows = (self._row(each) for each in mine)
        return [row for row in rows if not states or row.state in states][:most]

    async def cancel(self, id_: str) -> bool:
        """Have a job end as cancelled. Returns False if it is settled, or not there."""
        job = self._jobs.get(id_)
        if job is None or job.settled.is_set() or job.task is None:
            return False
        job.task.cancel()
        await asyncio.wait([job.task])
        self.slots.forget(id_)
        return self._end(job, _cancelled(job.spec))

    async def signal(self, id_: str, message: JsonObject, *, once: str | None = None) -> None:
        """Give a message to a job, whether it waits already or not."""
        job = self._jobs.get(id_)
        if job is None or (once is not None and once in job.once):
            return
        if once is not None:
            job.once.add(once)
        job.messages.put_nowait(message)

    async def wait(self, id_: str, timeout: float) -> JsonDict | None:
        """Return the next message to this job; None after `timeout`."""
        try:
            async with asyncio.timeout(timeout):
                return dict(await self._jobs[id_].messages.get())
        except TimeoutError:
            return None

    async def put_event(self, id_: str, data: JsonObject) -> None:
        """Add an event to a job."""
        job = self._jobs[id_]
        job.events.append(JobEvent(len(job.events) + 1, data))
        match data.get("state"):
            case "parked" | "held" | "queued" as state:
                job.reported = Hold(state, str(data.get("why", "")))
            case _:
                pass

    async def read_events(self, id_: str, after: int = 0) -> Sequence[JobEvent]:
        """Return the events of a job with a number above `after`."""
        job = self._jobs.get(id_)
        return () if job is None else job.events[after:]

    async def run_segment(self, spec: JobSpec, number: int) -> SegmentEnd:
        """Run a segment once there is a slot for it, and return how it ended."""
        job = self._jobs[spec.id]
        if job.join is not None:
            join, job.join, job.reported = job.join, None, RUNNING
            end = await join()
            if end is not None:
                return end
        job.has_slot_order = True
        try:
            return await self.slots.run(spec, number, is_next=job.is_next)
        finally:
            job.has_slot_order = False

    async def recover(self, worker: str) -> int:
        """Return 0: jobs of this process end with it."""
        del worker
        return 0

    # For the fleet

    def has(self, id_: str) -> bool:
        """Whether there is such a job."""
        return id_ in self._jobs

    def hold(self, id_: str) -> Hold:
        """Return the state of a job, and what it waits for."""
        job = self._jobs.get(id_)
        if job is None or job.settled.is_set():
            return Hold("settled", "")
        found = self.slots.hold(id_) if job.has_slot_order else None
        if found is not None and found.state == "parked":
            # Its segment has just ended, and the code of the job has not reported why.
            return RUNNING
        return found or job.reported

    def holds(self) -> tuple[Hold, ...]:
        """Return the state of each job that has not settled."""
        return tuple(self.hold(id_) for id_ in self.unsettled)

    @property
    def unsettled(self) -> dict[str, JobSpec]:
        """The jobs that have not settled by their ids, the oldest first."""
        return {id_: each.spec for id_, each in self._jobs.items() if not each.settled.is_set()}

    async def aclose(self) -> None:
        """End every job as cancelled, and wait for those that run."""
        jobs = [each for each in self._jobs.values() if not each.settled.is_set()]
        tasks = [each.task for each in jobs if each.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for each in jobs:
            self._end(each, _cancelled(each.spec))
        await self.slots.aclose()

    # One job

    async def _run(self, job: _Job) -> None:
        try:
            result = await run_job(self, job.spec)
        except Exception as error:  # noqa: BLE001 - of the segment, which may be the caller's
            what = f"{type(error).__name__}: {error}"
            result = failed_result(job.spec, SteersmanError(what))
        self._end(job, result)

    def _end(self, job: _Job, result: JsonObject) -> bool:
        if job.settled.is_set():
            return False
        job.result = result
        self.has_settled += 1
        job.settled.set()
        self._on_settled(job.spec, result)
        self._old.append(job.spec.id)
        if len(self._old) > self._kept:
            del self._jobs[self._old.popleft()]
        return True

    def _row(self, job: _Job) -> JobRow:
        hold = self.hold(job.spec.id)
        return JobRow(
            spec=job.spec,
            state=hold.state,
            result=job.result,
            attempts=int(hold.state in ("running", "settled")),
            why=hold.words(self._clock()),
            created=job.created,
        )


def _asked(spec: JobSpec) -> object:
    return spec.prompt, spec.agent, spec.budget


def _cancelled(spec: JobSpec) -> JsonObject:
    stopped = TurnStopped("cancelled", "the job was cancelled")
    return failed_result(spec, stopped, outcome="cancelled")
