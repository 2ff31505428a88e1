"""Leases in a SQLite file count by the time since the boot: no clock that is set moves them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from steersman._process import since_boot
from steersman.errors import SessionInUse
from steersman.ports import StoredTurn
from steersman.stores import WorkerRow
from steersman.stores._sql.store import SqlStore
from steersman.stores.sqlite import LONGEST_LEASE, SqliteDatabase
from tests.inbox.places import an_ask

HOUR = 3600.0
START = 1_800_000_000.0
OPENED: list[SqlStore] = []
"""What the processes of a test have opened."""


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    while OPENED:
        await OPENED.pop().aclose()


class Machine:
    """A machine with a clock on the wall, which can be set, and a boot."""

    def __init__(self, boot: str = "one") -> None:
        self.wall = START
        self.boot = boot
        self.seconds = 500.0

    def process(self, path: Path) -> SqlStore:
        clocks = (lambda: self.wall), (lambda: (self.boot, self.seconds))
        made = SqlStore(SqliteDatabase(path, 5.0, *clocks), SqliteDatabase(path, 5.0, *clocks))
        OPENED.append(made)
        return made

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.seconds += seconds

    def restart(self) -> None:
        self.boot, self.seconds = f"{self.boot}+", 20.0
        self.wall += 20.0


async def take(store: SqlStore, owner: str, session: str = "s") -> bool:
    try:
        await store.work.take(session, key="c", owner=owner, token=owner, machine="m", seconds=30.0)
    except SessionInUse:
        return False
    return True


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_clock_that_is_set_gives_a_conversation_to_nobody_else(
    tmp_path: Path, jump: float
) -> None:
    machine, path = Machine(), tmp_path / "work.db"
    first, second = machine.process(path), machine.process(path)
    assert await take(first, "a")
    machine.wait(10.0)

    machine.wall += jump

    assert not await take(second, "b")
    assert await first.work.renew("s", "a", 30.0)
    await first.work.begin("s", "a", StoredTurn("u1", None, "pay"))
    ready, free = await second.work.ready_now()
    assert ready == []
    assert free == pytest.approx(30.0)
    machine.wait(31.0)
    assert [each.conversation.session for each in (await second.work.ready_now())[0]] == ["s"]
    assert await take(machine.process(path), "b")
    assert not await first.work.renew("s", "a", 30.0)


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_an_answer_is_used_by_the_owner_of_the_lease_though_the_clock_was_set(
    tmp_path: Path, jump: float
) -> None:
    machine = Machine()
    store = machine.process(tmp_path / "work.db")
    assert await take(store, "a")
    first = await store.asks.open(an_ask(session="s"), None, (), "a")
    assert first is not None
    second = await store.asks.open(an_ask(session="s"), None, (first.number,), "a")
    assert second is not None
    for row in (first, second):
        await store.asks.end(row.number, "answered", "alice", "{}", "her mark")

    machine.wall += jump
    used = await store.asks.use(first.number, "mark of a", "a")
    machine.wait(31.0)
    late = await store.asks.use(second.number, "mark of a", "a")

    assert (used.used_mark, late.used_mark) == ("mark of a", None)


async def test_who_is_refused_reads_the_end_of_the_lease_by_the_clock_on_the_wall(
    tmp_path: Path,
) -> None:
    machine, path = Machine(), tmp_path / "work.db"
    assert await take(machine.process(path), "a")
    machine.wall += HOUR

    with pytest.raises(SessionInUse) as refused:
        await machine.process(path).work.take(
            "s", key="c", owner="b", token="b", machine="m", seconds=30.0
        )

    assert refused.value.until == pytest.approx(START + HOUR + 30.0)


async def test_workers_of_a_fleet_live_on_when_the_clock_is_set(tmp_path: Path) -> None:
    machine = Machine()
    store = machine.process(tmp_path / "work.db")
    await store.fleet.join(WorkerRow("w", "m", 1, 2, (), "open", 0.0, 0.0), 30.0)

    machine.wall += HOUR

    assert await store.fleet.renew("w", 30.0) == "open"
    assert [each.is_alive for each in await store.fleet.workers()] == [True]


async def test_after_a_restart_of_the_machine_a_lease_ends_in_its_time(tmp_path: Path) -> None:
    machine, path = Machine(), tmp_path / "work.db"
    assert await take(machine.process(path), "a")

    machine.restart()
    after = machine.process(path)

    assert not await take(after, "b")
    machine.wait(11.0)
    assert await take(after, "b")


async def test_after_a_restart_with_a_wrong_clock_a_lease_ends_all_the_same(tmp_path: Path) -> None:
    machine, path = Machine(), tmp_path / "work.db"
    assert await take(machine.process(path), "a")

    machine.restart()
    machine.wall -= 1000 * HOUR
    after = machine.process(path)

    assert not await take(after, "b")
    machine.wait(LONGEST_LEASE + 1.0)
    assert await take(after, "b")


async def test_two_machines_that_share_a_file_respect_the_leases_of_each_other(
    tmp_path: Path,
) -> None:
    one, other, path = Machine("one"), Machine("other"), tmp_path / "work.db"
    other.seconds = 90_000.0
    assert await take(one.process(path), "a")
    assert not await take(other.process(path), "b")
    for machine in (one, other):
        machine.wait(31.0)
    assert await take(other.process(path), "b")
    assert not await take(one.process(path), "a2")


async def test_a_lease_that_an_earlier_release_has_given_is_respected(tmp_path: Path) -> None:
    machine, path = Machine(), tmp_path / "work.db"
    assert await take(machine.process(path), "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE steersman_boots")
        connection.execute("ALTER TABLE steersman_workers DROP COLUMN faults")
        connection.execute("UPDATE steersman_schema SET version = 4")
        connection.execute(
            "UPDATE steersman_conversations SET lease_until = ?", (machine.wall + 30.0,)
        )

    assert not await take(machine.process(path), "b")
    machine.wait(31.0)
    assert await take(machine.process(path), "b")


async def test_boots_are_not_kept_for_ever(tmp_path: Path) -> None:
    machine, path = Machine(), tmp_path / "work.db"
    for number in range(150):
        machine.boot = str(number)
        await machine.process(path).work.ready_now()

    with closing(sqlite3.connect(path)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM steersman_boots").fetchall()
    assert count == 100


@pytest.mark.skipif(since_boot() is None, reason="this system reports no boot")
def test_the_time_since_the_boot_is_that_of_the_machine() -> None:
    found = since_boot()
    assert found is not None
    boot, seconds = found
    with Path("/proc/uptime").open(encoding="ascii") as file:
        uptime = float(file.read().split()[0])

    assert len(boot) == 36
    assert seconds == pytest.approx(uptime, abs=5.0)
    again = since_boot()
    assert again is not None
    assert again[1] >= seconds


@pytest.mark.process
@pytest.mark.skipif(since_boot() is None, reason="this system reports no boot")
def test_a_container_with_a_time_of_its_own_has_the_time_of_the_machine() -> None:
    program = "from steersman._process import since_boot; print(*since_boot())"
    apart = ["unshare", "--time", "--boottime", "1000000", "--fork", sys.executable, "-c", program]
    try:
        ended = subprocess.run(apart, check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no time namespace can be made here: {getattr(error, 'stderr', error)}")
    found = since_boot()
    assert found is not None
    boot, seconds = ended.stdout.split()

    assert boot == found[0]
    assert float(seconds) == pytest.approx(found[1], abs=30.0)
