"""Runs jobs and segments of a database in this process. One per process, as of DBOS.

A job is a workflow without a slot. It waits for its segment in memory; one task looks at the rows
of all that are waited for, so a thousand waiting jobs are one query and not a thousand.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from steersman import _json
from steersman._background import BackgroundTasks
from steersman._json import JsonDict, JsonObject
from steersman.errors import PoisonedJob, SteersmanError, StoreError, UsageError
from steersman.fleet._dbos.job_table import (
    ENDED,
    DbosJobs,
    end_from_json,
    end_to_json,
    segment_id,
    spec_from_json,
    spec_to_json,
)
from steersman.fleet._dbos.loading import (
    APPLICATION,
    JOB,
    JOBS,
    SEGMENT,
    SEGMENTS,
    VERSION,
    claim,
    errors_translated,
    load,
    prepare,
    release,
)
from steersman.fleet._dbos.places import Place
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import HIGHEST, JobSpec, Segment, SegmentEnd

log = logging.getLogger("steersman.fleet")

T = TypeVar("T")

ATTEMPTS = 3
"""How often a worker may end while it runs a segment, before the segment is not tried again."""
KEPT = 50
"""How many events of a job are kept."""
CLOSING = 10.0
POLL = 0.05
"""Seconds between two looks for a result that is being written."""
MOST_LOOKED = 500
"""Of how many workflows the rows are read at once."""

_current: Runner | None = None
"""The runner of this process."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a worker looks at the database, in seconds."""

    queue: float = 0.2
    """For jobs and segments to begin."""
    ends: float = 0.2
    """For segments that have ended, and jobs that were cancelled."""
    signals: float = 1.0
    """For messages to jobs, in SQLite; PostgreSQL notifies."""


@dataclass(slots=True)
class _Job:
    """A job whose code runs here."""

    task: asyncio.Task[JsonObject]
    events: list[JsonObject] = field(default_factory=list[JsonObject])


class Runner:
    """The engine's side of a worker: takes jobs and segments from the queues and runs them."""

    def __init__(
        self, place: Place, jobs: DbosJobs, worker: str, slots: int, rhythm: Rhythm | None = None
    ) -> None:
        self._place = place
        self._jobs = jobs
        self.worker = worker
        self._slots = slots
        self.rhythm = rhythm or Rhythm()
        self._free = asyncio.Semaphore(slots)
        self._running: dict[str, asyncio.Task[SegmentEnd]] = {}
        """The segments that run here, by the ids of their workflows."""
        self._mine: dict[str, _Job] = {}
        self._awaited: dict[str, asyncio.Event] = {}
        """The segments that jobs of this process wait for."""
        self._ending: set[str] = set()
        """Segments that have ended here, and whose rows may not show it yet."""
        self.background = BackgroundTasks(log)
        self._code: Callable[[JobSpec], Awaitable[JsonObject]] | None = None
        self._segment: Segment | None = None
        self._is_closing = False
        self.dbos: Any = None
        self._instance: Any = None

    @property
    def segments(self) -> dict[str, asyncio.Task[SegmentEnd]]:
        """The segments that run here, by the ids of their workflows."""
        return dict(self._running)

    @property
    def waiting(self) -> int:
        """How many jobs have their code here."""
        return len(self._mine)

    async def start(
        self, code: Callable[[JobSpec], Awaitable[JsonObject]], segment: Segment
    ) -> None:
        """Prepare the tables, and begin to take jobs. Raises `StoreError` or `UsageError`."""
        global _current  # noqa: PLW0603 - DBOS has one instance in a process, too
        if _current is not None:
            raise UsageError("store", self._place.name, "one engine in a process")
        self._code, self._segment = code, segment
        self.dbos = load()
        await self._jobs.in_thread(partial(prepare, self._place))
        with errors_translated(self._place.name):
            self._instance = self._made()
            _current = self
            claim(self)
            try:
                # In this thread: DBOS runs the workflows in the event loop it is launched in.
                self.dbos.DBOS.launch()
                await self._register()
            except BaseException:
                await self.aclose()
                raise
        self.background.keep(
            "the look at jobs",
            self._look_always,
            meanwhile="jobs wait for segments that other workers have run",
        )

    def _made(self) -> Any:
        """Return the DBOS of this process. Raises `UsageError` if the program has its own."""
        dbos = self.dbos
        # `DBOS(...)` returns the instance that there is, which is then not of this class.
        ours = type("FleetDBOS", (dbos.DBOS,), {})
        made = ours(
            config={
                "name": APPLICATION,
                "system_database_url": self._place.database,
                "dbos_system_schema": self._place.schema,
                "application_version": VERSION,
                "executor_id": self.worker,
                "serializer": dbos.DBOSPortableJSONSerializer(),
                "log_level": "ERROR",
                "system_database_engine": self._jobs.pool,
                "max_executor_threads": 16,
                "notification_listener_polling_interval_sec": self.rhythm.signals,
                "scheduler_polling_interval_sec": 3600.0,
                "run_migrations": False,
            }
        )
        if type(made) is not ours:
            raise _has_its_own("its instance of DBOS")
        if foreign := _foreign(made):
            dbos.DBOS.destroy()
            raise _has_its_own(f"the workflow {foreign[0]}")
        dbos.DBOS.workflow(name=JOB, max_recovery_attempts=None)(_job)
        dbos.DBOS.workflow(name=SEGMENT, max_recovery_attempts=ATTEMPTS - 1)(_segment)
        return made

    async def _register(self) -> None:
        await self.dbos.DBOS.register_queue_async(
            JOBS,
            partition_concurrency=1,
            polling_interval_sec=self.rhythm.queue,
            on_conflict="always_update",
        )
        await self.dbos.DBOS.register_queue_async(
            SEGMENTS,
            worker_concurrency=self._slots,
            polling_interval_sec=self.rhythm.queue,
            on_conflict="always_update",
        )

    def stop_taking(self) -> None:
        """Take no more jobs and segments; current ones continue."""
        for event in self._instance.background_thread_stop_events:
            event.set()

    async def aclose(self) -> None:
        """Stop running anything. Jobs whose code ran here must be given to others: `recover`."""
        global _current  # noqa: PLW0603 - as above
        self._is_closing = True
        await self.background.aclose()
        self.stop_taking()
        for task in (*self._running.values(), *(each.task for each in self._mine.values())):
            task.cancel()
        # What the program has registered meanwhile stays.
        destroy = partial(self.dbos.DBOS.destroy, destroy_registry=not _foreign(self._instance))
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                await self._jobs.in_thread(destroy)
        release(self)
        # DBOS has closed the threads that it gave to the event loop.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        if _current is self:
            _current = None

    async def written(self, timeout: float) -> None:
        """Wait until the ends of all segments that ran here are stored."""
        until = asyncio.get_running_loop().time() + timeout
        while self._ending and asyncio.get_running_loop().time() < until:
            ended = await self._jobs.listed(
                workflow_ids=[*self._ending], status=ENDED, load_input=False, load_output=False
            )
            self._ending -= {each.workflow_id for each in ended}
            await asyncio.sleep(POLL)

    # What the code of a job calls

    async def run_job(self, spec: JobSpec) -> JsonObject:
        """Run the code of a job, in its workflow."""
        assert self._code is not None
        task = asyncio.ensure_future(self._code(spec))
        self._mine[spec.id] = _Job(task)
        try:
            return await task
        except Exception as error:
            if self._is_closing:
                # It is a job of another worker now. DBOS records nothing for a cancelled task.
                raise asyncio.CancelledError from error
            if "WorkflowCancelled" in _name_of(error):
                # The job was cancelled with its segment, so this is not read.
                return {}
            if _is_of_engine(error):
                # Nothing is decided about the job: it is run again from its records. DBOS records
                # nothing for a cancelled task.
                log.warning("the job %s is run again: %s", spec.id, _first_line(error))
                self._give_back(spec.id)
                raise asyncio.CancelledError from error
            log.exception("the job %s failed", spec.id)
            return failed_result(spec, SteersmanError(f"{type(error).__name__}: {error}"))
        finally:
            self._mine.pop(spec.id, None)

    def _give_back(self, id_: str) -> None:
        """Put a job back into its queue, as soon as the database allows it."""
        rows = self._instance._sys_db

        async def give_back() -> None:
            await self._do(partial(rows.reenqueue_for_recovery, id_, [self.worker], JOBS))

        self.background.keep(f"giving back {id_}", give_back, meanwhile="that job is not run")

    async def _do(self, work: Callable[[], T]) -> T:
        """Do in a thread what only the engine itself can do. Raises `StoreError`."""

        def translated() -> T:
            with errors_translated(self._place.name):
                return work()

        return await self._jobs.in_thread(translated)

    async def run_segment(self, spec: JobSpec, number: int) -> SegmentEnd:
        """Put a segment into the queue, and return how it ended."""
        id_ = segment_id(spec.id, number)
        options = {
            "workflow_name": SEGMENT,
            "queue_name": SEGMENTS,
            "workflow_id": id_,
            "app_version": VERSION,
            "priority": HIGHEST + 1 - spec.priority,
        }
        handle = await self.dbos.DBOS.enqueue_workflow_with_options_async(
            options, spec_to_json(spec), number
        )
        await self._ended(id_)
        try:
            return end_from_json(await handle.get_result(polling_interval_sec=POLL))
        except Exception as error:
            if "MaxRecoveryAttemptsExceeded" in _name_of(error):
                raise PoisonedJob(spec.key, ATTEMPTS) from error
            raise

    async def _ended(self, id_: str) -> None:
        event = self._awaited.setdefault(id_, asyncio.Event())
        try:
            await event.wait()
        finally:
            self._awaited.pop(id_, None)

    async def wait(self, id_: str, timeout: float) -> JsonDict | None:
        """Return the next message to a job; None after `timeout`."""
        del id_
        found = await self.dbos.DBOS.recv_async(timeout_seconds=timeout)
        return dict(found) if _json.is_object(found) else None

    async def put_event(self, id_: str, data: JsonObject) -> None:
        """Add an event to a job. The last ones are kept."""
        job = self._mine[id_]
        job.events.append(dict(data))
        reported = {"events": job.events[-KEPT:], "count": len(job.events)}
        state = {name: data[name] for name in ("state", "why") if name in data}
        await self.dbos.DBOS.update_workflow_attributes_async(id_, {**reported, **state})

    # Segments

    async def on_slot(self, id_: str, spec: JobSpec, number: int) -> SegmentEnd:
        """Run a segment on a slot of this process, in its workflow."""
        assert self._segment is not None
        # Other workers may have more slots, and the queue has the number of the last one.
        async with self._free:
            # Without the context of the workflow: what the segment calls is none of its steps.
            task = asyncio.Task(_as_coroutine(self._segment(spec, number)), context=_no_context())
            self._running[id_] = task
            try:
                return await task
            except asyncio.CancelledError:
                # The workflow was cancelled, so this is not read.
                mine = asyncio.current_task()
                if self._is_closing or (mine is not None and mine.cancelling()):
                    raise
                return SegmentEnd(state="settled")
            except Exception as error:
                log.exception("a segment of the job %s failed", spec.id)
                what = SteersmanError(f"{type(error).__name__}: {error}")
                return SegmentEnd(state="settled", result=failed_result(spec, what))
            finally:
                self._running.pop(id_, None)
                self._ending.add(id_)
                if (event := self._awaited.get(id_)) is not None:
                    # The row is written a moment later; `get_result` looks until it is.
                    asyncio.get_running_loop().call_later(0.02, event.set)

    async def _look_always(self) -> None:
        while True:
            await asyncio.sleep(self.rhythm.ends)
            watched = [*{*self._awaited, *self._running, *self._mine, *self._ending}]
            for at in range(0, len(watched), MOST_LOOKED):
                await self._look(watched[at : at + MOST_LOOKED])

    async def _look(self, watched: list[str]) -> None:
        for each in await self._jobs.listed(
            workflow_ids=watched, status=ENDED, load_input=False, load_output=False
        ):
            self._ending.discard(each.workflow_id)
            if (event := self._awaited.get(each.workflow_id)) is not None:
                event.set()
            if each.status == "CANCELLED":
                if (running := self._running.get(each.workflow_id)) is not None:
                    running.cancel()
                if (mine := self._mine.get(each.workflow_id)) is not None:
                    mine.task.cancel()

    async def recover(self, worker: str) -> int:
        """Give what a dead worker had to others. Raises `StoreError`."""
        recover = self.dbos.DBOS._recover_pending_workflows
        return len(await self._do(partial(recover, [worker])))


def _foreign(instance: Any) -> list[str]:
    """Return the names of workflows that the program has registered, and not the fleet."""
    # There is no public way to the registry.
    known = instance._registry.workflow_info_map
    ours = (_job, _segment)
    return [
        name
        for name, function in known.items()
        if inspect.unwrap(function) not in ours and not name.startswith("<temp>.")
    ]


def _has_its_own(what: str) -> UsageError:
    return UsageError(
        "a worker",
        f"in a program that uses DBOS itself ({what})",
        "in a process that does not, because a process can have one DBOS only",
        hint="start `steersman fleet worker` as a process of its own",
    )


def _name_of(error: Exception) -> str:
    """Return the name of an error of DBOS; one that was stored has it as a field."""
    return f"{type(error).__name__} {getattr(error, 'name', '')}"


def _is_of_engine(error: Exception) -> bool:
    """Whether an error comes from the engine or its database, and not from a job."""
    home = type(error).__module__.partition(".")[0]
    return home in ("dbos", "sqlalchemy", "psycopg", "sqlite3") or isinstance(error, StoreError)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _no_context() -> contextvars.Context:
    return contextvars.Context()


async def _as_coroutine(work: Awaitable[SegmentEnd]) -> SegmentEnd:
    return await work


# The workflows. DBOS keeps functions, and a process has one runner.


async def _job(spec: JsonDict) -> JsonObject:
    assert _current is not None
    return await _current.run_job(spec_from_json(spec))


async def _segment(spec: JsonDict, number: int) -> JsonDict:
    assert _current is not None
    read = spec_from_json(spec)
    return end_to_json(await _current.on_slot(segment_id(read.id, number), read, number))
