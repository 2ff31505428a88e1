"""Leases and turns of real processes, and of a server that falls."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from steersman.errors import SessionInUse, StoreError
from steersman.ports import DurableWork, StoredTurn
from tests.inbox.places import LIMIT, in_postgres, in_sqlite
from tests.inbox.programs import line_of, running
from tests.postgres import PostgresServer

pytestmark = pytest.mark.process

ROUNDS = 4
PROGRAM = """\
import asyncio, sys
from steersman.errors import SessionInUse
from steersman.ports import StoredTurn
from steersman.stores import PostgresStore, SqliteStore

place, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = PostgresStore(place) if place.startswith("postgresql") else SqliteStore(place)
work = store.work

async def take(number):
    session = f"s{number}"
    try:
        await work.take(session, key="c", owner=name, token=name, machine="m", seconds=60.0)
    except SessionInUse as error:
        return f"lost to {error.owner}"
    await work.begin(session, name, StoredTurn("u", None, "pay"))
    return "won"

async def main():
    await work.unsettled("s")
    for number in range(rounds):
        print("ready", flush=True)
        sys.stdin.readline()
        print(await take(number), flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""


def program(place: str, name: str) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    return running(PROGRAM, place, name, str(ROUNDS))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_of_two_processes_that_take_at_once_one_wins(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = str(tmp_path / "work.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    async with asyncio.timeout(6 * LIMIT), AsyncExitStack() as stack:
        names, winner = ("a", "b"), ""
        both = [await stack.enter_async_context(program(url, name)) for name in names]
        for _ in range(ROUNDS):
            assert [await line_of(each) for each in both] == ["ready"] * 2
            for each in both:
                assert each.stdin is not None
                each.stdin.write(b"now\n")
            said = dict(zip(names, [await line_of(each) for each in both], strict=True))
            (winner,) = [name for name, line in said.items() if line == "won"]
            assert set(said.values()) == {"won", f"lost to {winner}"}
        place = in_sqlite(Path(url)) if kind == "sqlite" else in_postgres(url)
        # The winner of the last round is killed; its lease is valid still, and its turn is there.
        for each in both:
            each.kill()
        with pytest.raises(SessionInUse, match=winner):
            await take(place.store().work, "c", f"s{ROUNDS - 1}")
        assert len(await place.store().work.unsettled(f"s{ROUNDS - 1}")) == 1
        await place.aclose()


async def take(work: DurableWork, token: str, session: str = "s1") -> None:
    await work.take(session, key="c", owner=token, token=token, machine="m", seconds=60.0)


async def test_while_the_server_is_down_nothing_is_taken_and_afterwards_nothing_is_lost(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    place = in_postgres(postgres_url)
    first, second, watching = place.store().work, place.store().work, place.store()
    sink = place.store().sink("c")
    await take(first, "a")
    await first.begin("s1", "a", StoredTurn("u1", None, "pay"))
    ready = asyncio.ensure_future(anext(watching.ready()))

    async with asyncio.timeout(6 * LIMIT):
        postgres_server.stop(immediate=True)
        try:
            for call in (
                take(second, "b"),
                first.renew("s1", "a", 60.0),
                first.begin("s1", "a", StoredTurn("u2", None, "and then?")),
                first.settle("s1", "a", "u1", "settled", "completed"),
            ):
                with pytest.raises(StoreError):
                    await call
        finally:
            postgres_server.start()
        assert [turn.uuid for turn in await first.unsettled("s1")] == ["u1"]
        with pytest.raises(SessionInUse):
            await take(second, "b")
        assert await first.renew("s1", "a", 60.0)
        assert not ready.done()
        assert await first.settle("s1", "a", "u1", "parked", "")
        await first.release("s1", "a")
        assert (await ready).session == "s1"
        await take(second, "b")
        await sink.open()
    await place.aclose()


async def test_of_leases_and_turns_that_were_written_while_the_server_fell_none_counts_twice(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    place = in_postgres(postgres_url)
    works = [place.store().work for _ in range(2)]
    for work in works:
        await work.unsettled("s")

    async def both(number: int) -> list[object]:
        return await asyncio.gather(
            *(take(work, f"t{at}", f"s{number}") for at, work in enumerate(works)),
            return_exceptions=True,
        )

    async with asyncio.timeout(6 * LIMIT):
        taking = asyncio.gather(*(both(number) for number in range(8)))
        await works[0].unsettled("s")
        # In this thread: the server ends with the thread that has started it.
        postgres_server.restart()
        found = await taking
        for number, results in enumerate(found):
            assert sum(each is None for each in results) <= 1
            again = await both(number)
            won = [at for at, each in enumerate(again) if each is None]
            assert len(won) == 1
            # Who was told that it has the lease still has it.
            assert all(results[at] is not None for at in {0, 1} - set(won))
    await place.aclose()
