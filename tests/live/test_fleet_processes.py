"""A fleet over processes on the stock CLI: workers are killed, stopped, drained and cut off.

Counted are the model's requests and the lines that a tool writes. The model asks for a line only if
it is not there, so a doubled line or request is a doubled turn.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from steersman import Allow
from steersman.fleet import FleetClient, Job
from steersman.fleet._dbos.places import place_at
from steersman.testing.sandbox import CliSandbox
from tests.fleet.stage import Payer, Stage, Workers
from tests.live.staging import MakeScripted, inhabitants, until
from tests.postgres import PostgresServer

pytestmark = pytest.mark.live

LIMIT = 110.0
ROUNDS = 17 if os.environ.get("STEERSMAN_SOAK") else 1
"""Times six points and two databases: 204 kills."""
"""Seconds for a whole test on a machine at its limits."""
SECONDS = 20.0


def url_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return f"sqlite://{tmp_path / 'fleet.db'}"


async def settled(*jobs: Job) -> list[str]:
    return [(await job).text for job in jobs]


@asynccontextmanager
async def client_of(url: str) -> AsyncGenerator[FleetClient]:
    async with FleetClient(url) as client:
        yield client


async def is_running(client: FleetClient, job: Job) -> bool:
    (row,) = await client.jobs(conversation=job.conversation)
    return row.state == "running"


async def when(is_so: Callable[[], Awaitable[bool]]) -> None:
    while not await is_so():  # noqa: ASYNC110 - a database and processes set no event
        await asyncio.sleep(0.02)


POINTS = ("taken", "started", "asked", "in the tool", "asked again", "answered")


async def reached(
    point: str, client: FleetClient, job: Job, payer: Payer, sandbox: CliSandbox
) -> None:
    """Return once the turn of `job` is at a point."""

    async def is_there() -> bool:
        match point:
            case "taken":
                return await is_running(client, job)
            case "started":
                return bool(inhabitants(sandbox.root))
            case "asked":
                return payer.asked[job.key] >= 1
            case "in the tool":
                return job.key in payer.lines()
            case "asked again":
                return payer.asked[job.key] >= 2
            case _:
                return payer.answered[job.key] >= 1

    await when(is_there)


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        pytest.param(
            kind,
            point,
            marks=() if (kind, point) == ("postgres", "in the tool") else pytest.mark.soak_only,
        )
        for kind in ("sqlite", "postgres")
        for point in POINTS
    ],
)
@pytest.mark.parametrize("_round", range(ROUNDS))
async def test_a_worker_is_killed_and_another_finishes_its_turn_once(
    kind: str,
    point: str,
    _round: int,
    scripted: MakeScripted,
    sandbox: CliSandbox,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    slow = 0.0 if point == "answered" else 0.3
    payer = Payer(sandbox.project / "paid", slow=slow, tool_takes=1.0)
    agent, _model = scripted(payer, allowed_tools=["Bash"])
    stage = Stage(tmp_path, url_of(kind, request, tmp_path), agent)

    async with asyncio.timeout(LIMIT), Workers(stage) as workers:
        await workers.start(2)
        async with client_of(stage.url) as client:
            job = await client.send("customer 7", "pay k7", key="k7")
            await reached(point, client, job, payer, sandbox)
            killed = await workers.kill_owner(client, job)
            texts = await settled(job)
            again = await (await client.send("customer 7", "pay k7", key="k7"))
        await workers.end()
        await until(lambda: not inhabitants(sandbox.root))

    assert killed
    assert texts == [again.text] == ["paid k7"]
    assert payer.lines() == ["k7"]
    assert payer.answered["k7"] == 1 or point in ("asked again", "answered")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak_only)])
async def test_asked_then_killed_then_answered_with_nobody_alive_another_worker_finishes(
    kind: str,
    scripted: MakeScripted,
    sandbox: CliSandbox,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    payer = Payer(sandbox.project / "paid")
    agent, _model = scripted(payer)
    stage = Stage(tmp_path, url_of(kind, request, tmp_path), agent)

    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        async with Workers(stage) as workers:
            await workers.start(1, "--park-after", "0.1")
            client = await stack.enter_async_context(client_of(stage.url))
            job = await client.send("customer 7", "pay k7", key="k7")
            await when(lambda: is_parked(client, job))
            workers.kill()
        store = place_at(stage.url).store()
        stack.push_async_callback(store.aclose)
        (ask,) = await store.inbox().list()
        await store.inbox().answer(ask, Allow(), by="ann", seen=ask.digest)
        had_paid = payer.lines()
        async with Workers(stage) as workers:
            await workers.start(1)
            texts = await settled(job)
            await workers.end()

    assert had_paid == []
    assert texts == ["paid k7"]
    assert payer.lines() == ["k7"]


async def is_parked(client: FleetClient, job: Job) -> bool:
    (row,) = await client.jobs(conversation=job.conversation)
    return row.state == "parked"


@pytest.mark.soak_only
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_worker_that_was_stopped_past_its_lease_ends_and_its_turn_is_finished_once(
    kind: str,
    scripted: MakeScripted,
    sandbox: CliSandbox,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    payer = Payer(sandbox.project / "paid", slow=0.3, tool_takes=0.5)
    agent, _model = scripted(payer, allowed_tools=["Bash"])
    stage = Stage(tmp_path, url_of(kind, request, tmp_path), agent)

    async with asyncio.timeout(LIMIT), Workers(stage) as workers:
        await workers.start(2, lease=12.0)
        async with client_of(stage.url) as client:
            job = await client.send("customer 7", "pay k7", key="k7")
            await reached("asked", client, job, payer, sandbox)
            stopped = await workers.owner(client, job)
            os.kill(stopped.pid, signal.SIGSTOP)
            texts = await settled(job)
            os.kill(stopped.pid, signal.SIGCONT)
            status = await asyncio.wait_for(stopped.wait(), SECONDS)
        await workers.end()
        await until(lambda: not inhabitants(sandbox.root))

    assert texts == ["paid k7"]
    assert payer.lines() == ["k7"]
    assert status == 1


@pytest.mark.soak_only
@pytest.mark.timeout(300)
async def test_postgres_is_away_for_three_seconds_and_nothing_is_lost_or_doubled(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    postgres_server: PostgresServer,
    postgres_url: str,
    tmp_path: Path,
) -> None:
    payer = Payer(sandbox.project / "paid", slow=0.2, tool_takes=0.5)
    agent, _model = scripted(payer, allowed_tools=["Bash"])
    stage = Stage(tmp_path, postgres_url, agent)
    keys = [f"k{number}" for number in range(6)]

    async with asyncio.timeout(2 * LIMIT), Workers(stage) as workers:
        await workers.start(2, lease=15.0)
        async with client_of(stage.url) as client:
            jobs = [await client.send(f"c-{key}", f"pay {key}", key=key) for key in keys]
            await reached("in the tool", client, jobs[0], payer, sandbox)
            postgres_server.stop(immediate=True)
            until_then = time.monotonic() + 3.0
            await until(lambda: time.monotonic() > until_then)
            postgres_server.start()
        async with client_of(stage.url) as client:
            jobs = [await client.send(f"c-{key}", f"pay {key}", key=key) for key in keys]
            texts = await settled(*jobs)
        await workers.end()

    assert texts == [f"paid {key}" for key in keys]
    assert Counter(payer.lines()) == Counter(keys)


async def test_two_workers_need_six_connections_each_and_no_more(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    postgres_server: PostgresServer,
    postgres_url: str,
    tmp_path: Path,
) -> None:
    payer = Payer(sandbox.project / "paid")
    agent, _model = scripted(payer, allowed_tools=["Bash"])
    schema = postgres_url.rpartition("%3D")[2]
    # The server refuses the thirteenth connection of this user.
    postgres_server.run(
        f"CREATE ROLE few LOGIN CONNECTION LIMIT 12; GRANT ALL ON SCHEMA {schema} TO few;"
        " GRANT CREATE ON DATABASE postgres TO few"
    )
    stage = Stage(tmp_path, postgres_url.replace("tester@", "few@"), agent)
    keys = [f"k{number}" for number in range(6)]

    def connections() -> int:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'few'"
        return int(postgres_server.run(asked))

    try:
        async with asyncio.timeout(LIMIT), Workers(stage) as workers:
            await workers.start(2)
            idle = connections()
            async with client_of(postgres_url) as client:
                jobs = [await client.send(f"c-{key}", f"pay {key}", key=key) for key in keys]
                texts = await settled(*jobs)
            most = connections()
            await workers.end()
    finally:
        postgres_server.run("REASSIGN OWNED BY few TO tester; DROP OWNED BY few; DROP ROLE few")

    assert texts == [f"paid {key}" for key in keys]
    assert Counter(payer.lines()) == Counter(keys)
    assert idle <= 10
    assert most <= 12


@pytest.mark.soak_only
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_deploy_under_load_loses_and_doubles_nothing(
    kind: str,
    scripted: MakeScripted,
    sandbox: CliSandbox,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    payer = Payer(sandbox.project / "paid", slow=0.1, tool_takes=0.3)
    agent, _model = scripted(payer, allowed_tools=["Bash"])
    stage = Stage(tmp_path, url_of(kind, request, tmp_path), agent)
    keys = [f"k{number}" for number in range(8)]

    async with asyncio.timeout(2 * LIMIT), Workers(stage) as workers:
        await workers.start(1, "--drain-timeout", "0.2", lease=10.0)
        async with client_of(stage.url) as client:
            jobs = [
                await client.send(f"c{number % 4}", f"pay {key}", key=key)
                for number, key in enumerate(keys)
            ]
            await reached("in the tool", client, jobs[0], payer, sandbox)
            old = workers.all[0]
            old.terminate()
            await workers.start(1, lease=10.0)
            texts = await settled(*jobs)
            status = await asyncio.wait_for(old.wait(), SECONDS)
        await workers.end()
        await until(lambda: not inhabitants(sandbox.root))

    assert texts == [f"paid {key}" for key in keys]
    assert Counter(payer.lines()) == Counter(keys)
    assert status == 0
