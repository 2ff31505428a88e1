"""What a fleet over processes refuses, and what its rows never hold."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from steersman.errors import StoreError, StoreTooNew, UsageError
from steersman.fleet import FleetClient
from steersman.fleet._dbos.engine import DbosEngine
from steersman.fleet._dbos.loading import prepare
from steersman.fleet._dbos.places import place_at
from steersman.stores import SqliteStore


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "sqlite:/tmp/x.db",
        "sqlite://relative.db",
        "sqlite:///",
        "sqlite:///tmp",
        "slite:///tmp/x.db",
        "/tmp/x.db",
        "mysql://host/db",
        "postgresql//host",
        7,
    ],
)
def test_a_misspelt_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="store"):
        place_at(url, create=True)


def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--create"):
        FleetClient(f"sqlite://{tmp_path / 'typo.db'}")
    with pytest.raises(UsageError, match="folder that exists"):
        place_at(f"sqlite://{tmp_path / 'none' / 'fleet.db'}", create=True)

    assert list(tmp_path.iterdir()) == []


def test_a_password_is_in_no_text_of_a_place() -> None:
    with pytest.raises(StoreError) as caught:
        place_at("postgresql://ann:hunter2hunter2@localhost:1/db")

    assert "hunter2" not in str(caught.value)


@pytest.mark.process
def test_a_place_in_postgres_has_a_schema_beside_that_of_its_store_and_few_connections(
    postgres_url: str,
) -> None:
    place = place_at(postgres_url)
    other = place_at(postgres_url.replace("postgresql:", "postgres:"), connections=9)
    schema = postgres_url.rpartition("%3D")[2]

    assert place.schema == other.schema == f"{schema}_fleet"
    assert place.database == other.database == postgres_url
    assert re.fullmatch(r"postgresql://[\w/.-]+:\d+/postgres", place.name)
    assert repr(place) == f"Place({place.name!r})"
    assert (place.engine_connections, other.engine_connections) == (2, 5)


@pytest.mark.parametrize("connections", [5, 0, True, "6"])
def test_a_worker_needs_six_connections(connections: object) -> None:
    with pytest.raises(UsageError, match=r"connections: .*6 or more"):
        place_at("postgresql://host/db", connections=connections)  # type: ignore[arg-type]  # bad


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(UsageError, match="a URL that cannot be read") as refused:
        place_at("postgresql://ann:hunter2hunter2@host/db?no=option")

    assert "hunter2" not in str(refused.value)


def test_an_engine_that_only_sends_runs_nothing(tmp_path: Path) -> None:
    engine = DbosEngine(place_at(f"sqlite://{tmp_path / 'fleet.db'}", create=True))

    with pytest.raises(UsageError, match="that of a worker"):
        _ = engine.runner


def test_two_workers_prepare_a_file_one_after_the_other(tmp_path: Path) -> None:
    place = place_at(f"sqlite://{tmp_path / 'fleet.db'}", create=True)
    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(prepare, place) for _ in range(2)]
        assert [each.result(60) for each in ends] == [None, None]
    # The lock on the folder is gone.
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)


async def test_a_store_that_no_worker_has_prepared_says_so(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with SqliteStore(path):
        pass

    async with FleetClient(f"sqlite://{path}") as client:
        with pytest.raises(StoreError, match="steersman fleet worker"):
            await client.send("c", "pay")


async def test_a_store_of_a_later_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with SqliteStore(path):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE steersman_schema SET version = 999")

    async with FleetClient(f"sqlite://{path}") as client:
        with pytest.raises(StoreTooNew):
            await client.send("c", "pay")


@pytest.mark.parametrize(
    "words",
    [
        {"conversation": ""},
        {"prompt": ""},
        {"prompt": [{"text": "no type"}]},
        {"key": ""},
        {"agent": ""},
        {"priority": 1001},
        {"priority": 1.5},
        {"priority": True},
        {"limits": {"usd": 1}},
    ],
    ids=str,
)
async def test_bad_input_is_refused_before_anything_is_stored(
    tmp_path: Path, words: dict[str, object]
) -> None:
    path = tmp_path / "work.db"
    path.touch()
    given: dict[str, object] = {"conversation": "c", "prompt": "pay", **words}

    async with FleetClient(f"sqlite://{path}") as client:
        with pytest.raises(UsageError, match=next(iter(words))):
            await client.send(**given)  # type: ignore[arg-type]  # bad on purpose

    assert path.stat().st_size == 0


@pytest.mark.process
def test_the_front_of_a_fleet_loads_no_engine() -> None:
    program = (
        "import sys, steersman.fleet; steersman.fleet.Fleet, steersman.fleet.Job;"
        "print(sorted({'dbos', 'sqlalchemy', 'psycopg'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )

    assert found.stdout.strip() == "[]"
