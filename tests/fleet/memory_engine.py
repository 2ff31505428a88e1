"""A small engine in memory: the contract suite must pass on something that can be read whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count

from steersman._json import JsonDict, JsonObject
from steersman.errors import KeyTaken, SteersmanError, TurnStopped
from steersman.fleet.jobs import failed_result, run_job
from steersman.fleet.ports import (
    NO_SLOT,
    JobEvent,
    JobRow,
    JobSpec,
    JobState,
    Segment,
    SegmentEnd,
)


@asynccontextmanager
async def memory_engine(segment: Segment, slots: int) -> AsyncGenerator[MemoryEngine]:
    """An engine that runs jobs until the block is left."""
    engine = MemoryEngine(segment, slots)
    try:
        yield engine
    finally:
        await engine.aclose()


class MemoryEngine:
    """The port `Engine`, in one event loop."""

    def __init__(self, segment: Segment, slots: int) -> None:
        self._segment = segment
        self._free = slots
        self._rows: dict[str, JobRow] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._messages: dict[str, asyncio.Queue[JsonObject]] = {}
        self._once: set[tuple[str, str]] = set()
        self._events: dict[str, list[JobEvent]] = {}
        self._settled: dict[str, asyncio.Event] = {}
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    async def aclose(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def submit(self, spec: JobSpec) -> JobRow:
        if (known := self._rows.get(spec.id)) is not None:
            if known.spec != spec:
                raise KeyTaken(spec.key)
            return known
        row = JobRow(spec=spec, state="queued", created=time.time())
        self._rows[spec.id] = row
        self._messages[spec.id], self._events[spec.id] = asyncio.Queue(), []
        self._settled[spec.id] = asyncio.Event()
        before = [
            self._settled[id_]
            for id_, each in self._rows.items()
            if each.spec.conversation == spec.conversation and id_ != spec.id
        ]
        self._tasks[spec.id] = asyncio.Task(self._run(spec, before))
        return row

    async def _run(self, spec: JobSpec, before: Sequence[asyncio.Event]) -> None:
        for each in before:
            await each.wait()
        try:
            result = await run_job(self, spec)
        except Exception as error:  # noqa: BLE001 - of the segment
            what = f"{type(error).__name__}: {error}"
            result = failed_result(spec, SteersmanError(what))
        self._end(spec, result)

    def _end(self, spec: JobSpec, result: JsonObject) -> None:
        self._set(spec.id, state="settled", result=result)
        self._settled[spec.id].set()

    def _set(self, id_: str, **changes: object) -> None:
        self._rows[id_] = replace(self._rows[id_], **changes)  # type: ignore[arg-type]  # fields

    async def get(self, id_: str, *, wait: float = 0.0) -> JobRow | None:
        if id_ in self._rows:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._settled[id_].wait()
        return self._rows.get(id_)

    async def list(
        self, *, conversation: str | None = None, states: Sequence[JobState] = (), most: int = 1000
    ) -> list[JobRow]:
        found = [
            row
            for row in self._rows.values()
            if conversation in (None, row.spec.conversation) and (not states or row.state in states)
        ]
        return found[:most]

    async def cancel(self, id_: str) -> bool:
        row = self._rows.get(id_)
        if row is None or row.state == "settled":
            return False
        task = self._tasks[id_]
        task.cancel()
        await asyncio.wait({task})
        stopped = TurnStopped("cancelled", "the job was cancelled")
        self._end(row.spec, failed_result(row.spec, stopped, outcome="cancelled"))
        return True

    async def signal(self, id_: str, message: JsonObject, *, once: str | None = None) -> None:
        if once is not None:
            if (id_, once) in self._once:
                return
            self._once.add((id_, once))
        if id_ in self._messages:
            self._messages[id_].put_nowait(message)

    async def wait(self, id_: str, timeout: float) -> JsonDict | None:
        try:
            async with asyncio.timeout(timeout):
                return dict(await self._messages[id_].get())
        except TimeoutError:
            return None

    async def put_event(self, id_: str, data: JsonObject) -> None:
        events = self._events[id_]
        events.append(JobEvent(len(events) + 1, data))
        if "state" in data:
            self._set(id_, state=data["state"], why=data.get("why", ""))

    async def read_events(self, id_: str, after: int = 0) -> Sequence[JobEvent]:
        return self._events.get(id_, [])[after:]

    async def run_segment(self, spec: JobSpec, number: int) -> SegmentEnd:
        self._set(spec.id, state="queued", why=NO_SLOT)
        await self._slot(spec.priority)
        try:
            self._set(spec.id, state="running", why="", attempts=1)
            return await self._segment(spec, number)
        finally:
            self._give_slot()

    async def _slot(self, priority: int) -> None:
        if self._free:
            self._free -= 1
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.append((-priority, next(self._numbers), given))
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():
                self._give_slot()
            raise

    def _give_slot(self) -> None:
        self._waiting = [each for each in self._waiting if not each[2].done()]
        if self._waiting:
            min(self._waiting)[2].set_result(None)
        else:
            self._free += 1

    async def recover(self, worker: str) -> int:
        del worker
        return 0
