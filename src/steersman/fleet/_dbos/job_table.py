"""Jobs in a database, for programs that send and look: it runs nothing, and changes no tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman.errors import KeyTaken, SteersmanError, TurnStopped
from steersman.fleet._dbos.loading import (
    APPLICATION,
    JOB,
    JOBS,
    SEGMENT,
    VERSION,
    errors_translated,
    load,
    pickles_refused,
)
from steersman.fleet._dbos.places import Place
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import (
    NO_SLOT,
    JobEvent,
    JobRow,
    JobSpec,
    JobState,
    SegmentEnd,
    conversation_prefix,
)

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus
    from sqlalchemy import Engine as SqlEngine


T = TypeVar("T")
Listed: TypeAlias = "list[WorkflowStatus]"

FIRST_LOOK, LAST_LOOK, SLOWER = 0.02, 0.5, 1.3
"""Seconds between two looks at a job that is waited for."""
THREADS = 4
IDLE_IN_TRANSACTION = "60s"
"""After that PostgreSQL ends a connection with an open transaction, as of a stopped process."""


class DbosJobs:
    """The rows of jobs. Its methods are those of `Engine` that any process may call."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._client: DBOSClient | None = None
        self._pool: SqlEngine | None = None
        # DBOS replaces the threads of the event loop, and closes them with its own.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="steersman-fleet")

    async def aclose(self) -> None:
        """Close the connections. May be called again."""
        client, self._client = self._client, None
        if client is not None:
            await self.in_thread(client.destroy)
        pool, self._pool = self._pool, None
        if pool is not None:
            await self.in_thread(pool.dispose)
        self._threads.shutdown(wait=False)

    @property
    def pool(self) -> SqlEngine | None:
        """The connections to PostgreSQL, which all parts of the engine share; None for a file."""
        if self._pool is None and self._place.path is None:
            self._pool = _pool(self._place)
        return self._pool

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def submit(self, spec: JobSpec) -> JobRow:
        """Store a job and return its row. Raises `KeyTaken` if it is another one."""
        known = await self.get(spec.id)
        if known is None:
            place = await self._place_in_line(spec.conversation)
            if await self._call(lambda client: _enqueue(client, spec, place)):
                return JobRow(spec=spec, state="queued", created=time.time())
            # Another process has sent it at the same time.
            known = await self.get(spec.id)
        if known is None or known.spec != spec:
            raise KeyTaken(spec.key)
        return known

    async def _place_in_line(self, conversation: str) -> int:
        # DBOS orders by priority first, then by time, of which SQLite has whole seconds only.
        before = await self.listed(
            name=JOB,
            status=OPEN,
            workflow_id_prefix=conversation_prefix(conversation),
            load_input=False,
            load_output=False,
        )
        return 1 + max((each.priority or 0 for each in before), default=0)

    async def get(self, id_: str, *, wait: float = 0.0) -> JobRow | None:
        """Return a job. Waits up to `wait` seconds until it is settled."""
        until, pause = time.monotonic() + wait, FIRST_LOOK
        while True:
            found = await self.listed(workflow_ids=[id_], name=JOB)
            if not found or found[0].status in ENDED or time.monotonic() >= until:
                break
            await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(pause * SLOWER, LAST_LOOK)
        return None if not found else (await self._rows(found))[0]

    async def list(
        self, *, conversation: str | None = None, states: Sequence[JobState] = (), most: int = 1000
    ) -> list[JobRow]:
        """Return jobs, the oldest first."""
        statuses = [
            *(ENDED if "settled" in states else ()),
            *(OPEN if {*states} - {"settled"} else ()),
        ]
        found = await self.listed(
            name=JOB,
            status=statuses or None,
            workflow_id_prefix=None if conversation is None else conversation_prefix(conversation),
            limit=None if states else most,
        )
        rows = await self._rows(
            sorted(found, key=lambda each: (each.created_at or 0, each.priority or 0))
        )
        return [row for row in rows if not states or row.state in states][:most]

    async def cancel(self, id_: str) -> bool:
        """Have a job end as cancelled. Returns False if it is settled, or not there."""
        before = await self.get(id_)
        if before is None or before.state == "settled":
            return False
        await self._call(lambda client: client.cancel_workflow(id_, cancel_children=True))
        found = await self.listed(workflow_ids=[id_], load_input=False, load_output=False)
        return bool(found) and found[0].status == "CANCELLED"

    async def signal(self, id_: str, message: JsonObject, *, once: str | None = None) -> None:
        """Give a message to a job."""
        mark = None if once is None else f"{id_}:{once}"
        await self._call(lambda client: client.send(id_, dict(message), None, mark))

    async def read_events(self, id_: str, after: int = 0) -> Sequence[JobEvent]:
        """Return the events of a job with a number above `after`, as far as they are kept."""
        found = await self.listed(workflow_ids=[id_], load_input=False, load_output=False)
        reported = (found[0].attributes or {}) if found else {}
        events = reported.get("events", ())
        first = reported.get("count", 0) - len(events) + 1
        numbered = [JobEvent(first + at, data) for at, data in enumerate(events)]
        return [each for each in numbered if each.number > after]

    async def workers(self) -> Sequence[str]:
        """Return the workers that jobs and segments name."""
        found = await self.listed(status="PENDING", load_input=False, load_output=False)
        return sorted({each.executor_id or "" for each in found})

    async def listed(self, **filters: Any) -> Listed:
        """Return workflows as DBOS lists them."""
        return await self._call(lambda client: client.list_workflows(**filters))

    async def _rows(self, found: Sequence[WorkflowStatus]) -> Sequence[JobRow]:
        open_ = [each.workflow_id for each in found if each.status == "PENDING"]
        segments = (
            await self.listed(
                name=SEGMENT,
                status=OPEN,
                parent_workflow_id=open_ if len(open_) <= MOST_NAMED else None,
                load_input=False,
                load_output=False,
            )
            if open_
            else []
        )
        return [row_of(each, by_job(segments)) for each in found]

    async def _call(self, work: Callable[[DBOSClient], T]) -> T:
        return await self.in_thread(lambda: self._do(work))

    def _do(self, work: Callable[[DBOSClient], T]) -> T:
        with errors_translated(self._place.name), pickles_refused():
            if self._client is None:
                self._client = _client(self._place, self.pool)
            return work(self._client)


MOST_NAMED = 100
"""For more jobs than these the open segments of all are read."""


def _pool(place: Place) -> SqlEngine:
    import sqlalchemy  # noqa: PLC0415 - loaded with the engine
    from sqlalchemy import event  # noqa: PLC0415 - as above

    url = sqlalchemy.make_url(place.database).set(drivername="postgresql+psycopg")
    made = sqlalchemy.create_engine(
        url,
        pool_size=place.engine_connections,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"application_name": APPLICATION, "connect_timeout": 10},
    )

    def limit(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION}'")
        connection.commit()

    event.listen(made, "connect", limit)
    return made


def _client(place: Place, pool: SqlEngine | None) -> DBOSClient:
    dbos = load()
    made: DBOSClient = dbos.DBOSClient(
        system_database_url=place.database,
        dbos_system_schema=place.schema,
        serializer=dbos.DBOSPortableJSONSerializer(),
        system_database_engine=pool,
        application_name=APPLICATION,
        retry_connection_errors=False,
    )
    return made


def _enqueue(client: DBOSClient, spec: JobSpec, place: int) -> bool:
    """Store a job. Returns False if there is one of its id."""
    from dbos._error import DBOSWorkflowIDInUseError  # noqa: PLC0415 - loaded with the client

    options: Any = {
        "workflow_name": JOB,
        "queue_name": JOBS,
        "workflow_id": spec.id,
        "app_version": VERSION,
        "queue_partition_key": conversation_prefix(spec.conversation),
        "priority": place,
        "workflow_id_reuse_policy": "reject",
    }
    try:
        client.enqueue(options, spec_to_json(spec))
    except DBOSWorkflowIDInUseError:
        return False
    return True


OPEN = ["ENQUEUED", "PENDING"]
"""The statuses of workflows that have not ended."""
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]

_SPEC = frozenset(each.name for each in fields(JobSpec))


def spec_to_json(spec: JobSpec) -> JsonDict:
    """Return `spec` as JSON."""
    return asdict(spec)


def spec_from_json(found: Mapping[str, Any]) -> JobSpec:
    """Return the spec that `spec_to_json` wrote."""
    return JobSpec(**{name: value for name, value in found.items() if name in _SPEC})


def end_to_json(end: SegmentEnd) -> JsonDict:
    """Return `end` as JSON."""
    return asdict(end)


def end_from_json(found: Mapping[str, Any]) -> SegmentEnd:
    """Return the end that `end_to_json` wrote."""
    fields: dict[str, Any] = {**found, "waits_for": tuple(found["waits_for"])}
    return SegmentEnd(**fields)


def segment_id(job: str, number: int) -> str:
    """Return the id of a segment of a job."""
    return f"{job}.{number}"


def job_of(segment: str) -> str:
    """Return the id of the job of a segment."""
    return segment.rpartition(".")[0]


def row_of(found: WorkflowStatus, segments: Mapping[str, WorkflowStatus]) -> JobRow:
    """Return a job as a row. `segments` are the open segments, by the ids of their jobs."""
    spec = _spec_of(found)
    segment = segments.get(found.workflow_id)
    reported = found.attributes or {}
    state, why = _state(found.status, segment, reported)
    return JobRow(
        spec=spec,
        state=state,
        result=_result(found, spec) if state == "settled" else None,
        attempts=(segment.recovery_attempts or 0) if segment is not None else 0,
        why=why,
        worker=_worker(found, segment) if state != "settled" else "",
        created=(found.created_at or 0) / 1000,
    )


def _spec_of(found: WorkflowStatus) -> JobSpec:
    given: Any = found.input
    # A row that is no job of ours must not hide the others.
    args = given.get("args") if _json.is_object(given) else None
    first: Any = args[0] if args else None
    plain = first if _json.is_object(first) else {}
    return spec_from_json({"conversation": "", "prompt": None, "key": found.workflow_id, **plain})


def _state(
    status: str, segment: WorkflowStatus | None, reported: Mapping[str, Any]
) -> tuple[JobState, str]:
    if status in ENDED:
        return "settled", ""
    if segment is not None:
        return ("running", "") if segment.status == "PENDING" else ("queued", NO_SLOT)
    state = reported.get("state")
    if state in ("parked", "held"):
        return state, str(reported.get("why") or "")
    return "queued", ""


def _worker(found: WorkflowStatus, segment: WorkflowStatus | None) -> str:
    holder = segment if segment is not None and segment.status == "PENDING" else found
    return (holder.executor_id or "") if holder.status == "PENDING" else ""


def _result(found: WorkflowStatus, spec: JobSpec) -> JsonDict:
    output: Any = found.output
    if found.status == "SUCCESS" and _json.is_object(output):
        return dict(output)
    if found.status == "CANCELLED":
        stopped = TurnStopped("cancelled", "the job was cancelled")
        return dict(failed_result(spec, stopped, outcome="cancelled"))
    reason = SteersmanError(f"the job ended as {found.status}: {found.error}")
    return dict(failed_result(spec, reason))


def by_job(segments: Iterable[WorkflowStatus]) -> dict[str, WorkflowStatus]:
    """Return segments by the ids of their jobs."""
    return {job_of(each.workflow_id): each for each in segments}
