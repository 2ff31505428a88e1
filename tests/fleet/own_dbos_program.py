"""A program with a DBOS application of its own, beside a fleet: it prints what became of both.

`python -m tests.fleet.own_dbos_program WHAT FOLDER`. A process has one DBOS, so each is a program.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from dbos import DBOS, DBOSClient

from steersman.errors import UsageError
from steersman.fleet import FleetClient
from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.loading import JOB, JOBS, VERSION, prepare
from steersman.fleet._dbos.places import Place, place_at
from steersman.fleet.ports import JobSpec, SegmentEnd, conversation_prefix
from tests.fleet.contract_program import QUICK

LIMIT = 20.0


@dataclass
class Order:
    """What only a pickle can store."""

    colours: frozenset[str]


@dataclass
class Evil:
    """Makes a folder when it is unpickled."""

    path: Path

    def __reduce__(self) -> tuple[object, ...]:
        """Say how it is made again."""
        return os.mkdir, (str(self.path),)


def register() -> None:
    """Register the workflows of the program."""
    DBOS.workflow(name="count")(count)
    DBOS.workflow(name="count_later")(count_later)


def count(order: Order) -> Order:
    """Return the order."""
    return order


async def count_later(order: Order) -> Order:
    """Return the order."""
    return order


def launch(folder: Path) -> None:
    """Start the program's own DBOS, with the serializer that it has by default."""
    DBOS(config={"name": "own", "system_database_url": f"sqlite:///{folder / 'own.db'}"})
    DBOS.launch()


async def own_work() -> None:
    """Run both workflows of the program, and read what they have stored."""
    order = Order(frozenset({"red", "blue"}))
    counted = await asyncio.to_thread(DBOS.start_workflow, count, order)
    assert await asyncio.to_thread(counted.get_result) == order
    later = await DBOS.start_workflow_async(count_later, order)
    assert await later.get_result() == order
    for each in await DBOS.list_workflows_async():
        assert each.input is not None
        assert (each.input["args"], each.output) == ((order,), order)
    print("own work is done")  # noqa: T201 - read by the test


async def segment(spec: JobSpec, number: int) -> SegmentEnd:
    """End at once."""
    del spec, number
    return SegmentEnd(state="settled", result={"outcome": "completed"})


async def fleet_work(engine: DbosEngine) -> None:
    """Run a job of the fleet."""
    spec = JobSpec(conversation="c", prompt="pay", key="k")
    await engine.submit(spec)
    row = await engine.get(spec.id, wait=LIMIT)
    assert row is not None
    assert row.result is not None
    print("the fleet's job is", row.result["outcome"])  # noqa: T201 - as above


async def beside_a_client(place: Place, folder: Path) -> None:
    """Read and send jobs of a fleet, and run the program's own workflows before and after."""
    register()
    launch(folder)
    await own_work()
    async with FleetClient(place) as client:
        await client.send("c", "pay", key="k")
        assert len(await client.jobs()) == 1
        await own_work()
    await own_work()
    DBOS.destroy()


async def beside_a_worker(place: Place, folder: Path) -> None:
    """Try to be a worker, too: before the program's own DBOS is launched, and after."""
    register()
    for is_launched in (False, True):
        if is_launched:
            launch(folder)
        async with DbosEngine(place) as engine:
            try:
                await engine.start(segment, worker="w", slots=1, rhythm=QUICK)
            except UsageError as error:
                print(str(error).splitlines()[0])  # noqa: T201 - as above
    await own_work()
    DBOS.destroy()


async def after_a_worker(place: Place, folder: Path) -> None:
    """Be a worker for a while, twice, and then use DBOS for the program's own work."""
    for _ in range(2):
        async with DbosEngine(place) as engine:
            await engine.start(segment, worker="w", slots=1, rhythm=QUICK)
            await fleet_work(engine)
    register()
    launch(folder)
    await own_work()
    DBOS.destroy()


async def with_an_evil_row(place: Place, folder: Path) -> None:
    """List jobs, and run them, while a row among them holds a pickle that makes a folder."""
    conversation = JobSpec(conversation="evil", prompt="x", key="k").conversation
    attacker = DBOSClient(system_database_url=place.database, dbos_system_schema=place.schema)
    await attacker.enqueue_async(
        {
            "workflow_name": JOB,
            "queue_name": JOBS,
            "workflow_id": "evil",
            "app_version": VERSION,
            "queue_partition_key": conversation_prefix(conversation),
        },
        Evil(folder / "made"),
    )
    async with FleetClient(place) as client:
        print(len(await client.jobs()), "jobs are listed")  # noqa: T201 - as above
    async with DbosEngine(place) as engine:
        await engine.start(segment, worker="w", slots=1, rhythm=QUICK)
        await fleet_work(engine)
        row = await engine.get("evil", wait=LIMIT)
        assert row is not None
        print("the evil one is", row.state)  # noqa: T201 - as above
    print("the folder", "is" if (folder / "made").exists() else "is not", "made")  # noqa: T201


async def main(what: str, folder: str, url: str) -> None:
    """Run the program of this name."""
    place = place_at(url, create=True)
    prepare(place)
    async with asyncio.timeout(3 * LIMIT), place.store():
        await globals()[what](place, Path(folder))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
