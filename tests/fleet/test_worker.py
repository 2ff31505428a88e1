"""A worker goes on when the engine or the store fails: nothing is signalled or taken over less."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from steersman import Agent
from steersman.errors import LeaseLost, StoreError
from steersman.fleet._dbos.places import Place, place_at
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.ports import job_id
from steersman.fleet.worker import Worker, worker_name
from steersman.permissions import Allow
from steersman.ports import StoredTurn
from steersman.stores import SqliteStore, WorkerRow
from steersman.testing.scripted.cli import ScriptedCLI
from tests.inbox.places import Session, an_ask

LIMIT = 20.0


class Faulty:
    """The engine of a worker and its runner; calls that are named in `faults` fail so often."""

    segments: dict[str, Any] = {}
    rhythm = Rhythm(queue=0.0)
    faults_left: Counter[str]

    def __init__(self, **faults: int) -> None:
        self.faults_left = Counter(faults)
        self.signalled: list[tuple[str, str | None]] = []
        self.recovered: list[str] = []
        self.given_back: list[str] = []
        self.named: list[str] = []
        """The workers that jobs name."""
        self.closed = 0
        self.news = asyncio.Event()

    @property
    def runner(self) -> Self:
        return self

    @property
    def faults(self) -> dict[str, str]:
        return {}

    def _fail(self, name: str, error: Exception) -> None:
        if self.faults_left[name] > 0:
            self.faults_left[name] -= 1
            raise error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.closed += 1

    async def start(self, *_segment: object, **_options: object) -> None:
        """Take no jobs."""

    def stop_taking(self) -> None:
        """Take none."""

    async def written(self, _timeout: float) -> None:
        """Nothing is to be written."""

    async def workers(self) -> list[str]:
        return self.named

    async def recover(self, worker: str) -> int:
        if worker.startswith("dead"):
            self._fail("recover", StoreError("the database was restarted"))
            self.recovered.append(worker)
            self.news.set()
            return 2
        self.given_back.append(worker)
        return 0

    async def get(self, id_: str) -> str:
        return id_

    async def signal(self, id_: str, _message: object, *, once: str | None = None) -> None:
        self._fail("signal", StoreError("the database was restarted"))
        self.signalled.append((id_, once))
        self.news.set()


@asynccontextmanager
async def working(place: Place, engine: Faulty) -> AsyncGenerator[Worker]:
    """A worker that takes jobs, drained at the end."""
    agents = {"default": Agent(transport=ScriptedCLI())}
    worker = Worker(place, agents, lease=2.0, make_engine=lambda _: engine)  # type: ignore[arg-type,return-value]  # what a worker calls of it
    running = asyncio.Task(worker.run())
    try:
        async with asyncio.timeout(LIMIT):
            await worker.is_ready.wait()
            yield worker
    finally:
        worker.drain()
        await asyncio.wait_for(running, LIMIT)


async def answered_work(store: SqliteStore, session: str) -> None:
    """A parked turn of a conversation with that name, whose ask is answered."""
    inbox = store.inbox()
    await store.work.take(session, key=session, owner="a", token="a", machine="m", seconds=60.0)
    await store.work.begin(session, "a", StoredTurn(f"u-{session}", "invoice 7", "pay"))
    asks = Session(inbox)
    ask = asks.open(an_ask(id_=f"q-{session}", session=session, turn=f"u-{session}"))
    await asks.shown()
    inbox.close_ask(ask, "parked", may_return=True)
    await store.work.settle(session, "a", f"u-{session}", "parked", "")
    await store.work.release(session, "a")
    await inbox.answer(ask, Allow(), by="ann")


@pytest.mark.parametrize("faults", [1, 3])
async def test_an_answer_is_signalled_until_the_signal_has_arrived(
    tmp_path: Path, faults: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "steersman.fleet")
    place = place_at(f"sqlite://{tmp_path / 'fleet.db'}", create=True)
    async with SqliteStore(tmp_path / "fleet.db") as store:
        for session in ("c1", "c2"):
            await answered_work(store, session)
        engine = Faulty(signal=faults)
        async with working(place, engine):
            while len(engine.signalled) < 2:
                engine.news.clear()
                await engine.news.wait()

    expected = {(job_id(each, "invoice 7"), f"q-{each}") for each in ("c1", "c2")}
    assert set(engine.signalled) == expected
    assert "parked jobs are not continued by their answers" in caplog.text


async def test_jobs_of_a_dead_worker_are_taken_over_although_the_store_failed_meanwhile(
    tmp_path: Path,
) -> None:
    place = place_at(f"sqlite://{tmp_path / 'fleet.db'}", create=True)
    async with SqliteStore(tmp_path / "fleet.db") as store:
        fleet = store.fleet
        for name in ("dead1", "dead2"):
            await fleet.join(WorkerRow(name, "m", 7, 4), 0.0)
        engine = Faulty(recover=1)
        async with working(place, engine) as worker:
            while {*engine.recovered} != {"dead1", "dead2"}:
                engine.news.clear()
                await engine.news.wait()
            assert worker.faults == {"the take-over of jobs": "the database was restarted"}
            async with asyncio.timeout(LIMIT):
                while not (stored := await stored_faults(store, worker.name)):  # noqa: ASYNC110 - a row
                    await asyncio.sleep(0.05)

    assert stored == ("the take-over of jobs: the database was restarted",)


async def stored_faults(store: SqliteStore, name: str) -> tuple[str, ...]:
    (mine,) = [each for each in await store.fleet.workers() if each.worker == name]
    return mine.faults


async def test_a_worker_whose_row_is_gone_ends_because_others_have_its_jobs(
    tmp_path: Path,
) -> None:
    place = place_at(f"sqlite://{tmp_path / 'fleet.db'}", create=True)
    engine = Faulty()
    worker = Worker(place, {}, lease=0.3, make_engine=lambda _: engine)  # type: ignore[arg-type,return-value]  # as above
    running = asyncio.Task(worker.run())
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "fleet.db") as store:
        await worker.is_ready.wait()
        rows = await store.fleet.workers()
        await store.fleet.leave(worker.name)
        with pytest.raises(LeaseLost, match=worker.name):
            await running

    assert [(each.worker, each.slots, each.agents) for each in rows] == [(worker.name, 4, ())]
    assert engine.closed == 0


async def test_rows_of_dead_workers_are_kept_for_an_hour_and_jobs_of_unknown_ones_are_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "steersman.fleet")
    place = place_at(f"sqlite://{tmp_path / 'fleet.db'}", create=True)
    async with SqliteStore(tmp_path / "fleet.db") as store:
        fleet = store.fleet
        for name, seconds in (("dead-now", -10.0), ("dead-long", -3700.0), ("alive", 60.0)):
            await fleet.join(WorkerRow(name, "m", 7, 4), seconds)
        engine = Faulty()
        engine.named = ["dead-and-forgotten", "alive"]
        async with working(place, engine) as worker:
            while len(left := [each.worker for each in await fleet.workers()]) > 3:  # noqa: ASYNC110 - a row
                await asyncio.sleep(0.01)
        after = [each.worker for each in await fleet.workers()]

    assert {*left} == {"dead-now", "alive", worker.name}
    assert {*after} == {"dead-now", "alive"}
    assert {*engine.recovered} == {"dead-now", "dead-long", "dead-and-forgotten"}
    assert "took over 2 jobs and segments of dead-and-forgotten" in caplog.text
    assert engine.given_back == [worker.name] * 2
    assert engine.closed == 1


def test_no_two_workers_have_one_name() -> None:
    names = {worker_name() for _ in range(20)}

    assert len(names) == 20
    assert all(f"-{os.getpid()}-" in each for each in names)
