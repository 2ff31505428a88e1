"""Which conversations of a store can be continued, in SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from steersman.permissions import Allow, Ask
from steersman.ports import Conversation, StoredTurn
from steersman.stores import PostgresStore, SqliteStore
from steersman.stores._sql.asks import AskTable
from tests.inbox.places import LIMIT, OTHER, Place, Session, an_ask, in_postgres, in_sqlite
from tests.postgres import PostgresServer

LONG, SHORT = 60.0, 0.05
TURN = StoredTurn("u1", "invoice 7", "pay")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "sqlite":
        made = in_sqlite(tmp_path / "work.db")
    else:
        made = in_postgres(request.getfixturevalue("postgres_url"))
    yield made
    await made.aclose()


class Host:
    """A process with one conversation."""

    def __init__(self, place: Place, session: str = "s1") -> None:
        store = place.store()
        self.inbox, self.work = store.inbox(), store.work
        self.session = session
        self._asks = Session(self.inbox)

    async def take(self, token: str) -> Conversation | None:
        return await self.work.take(
            self.session, key="c", owner=token, token=token, machine="m", seconds=LONG
        )

    async def begin(self, token: str, turn: StoredTurn = TURN) -> None:
        await self.work.begin(self.session, token, turn)

    async def die(self, token: str) -> None:
        """End as `kill -9` does: the lease ends soon."""
        await self.work.renew(self.session, token, SHORT)

    async def asked(self, ask: Ask | None = None, shown: int = 1) -> Ask:
        """An ask that waits in the store."""
        opened = self._asks.open(ask or an_ask(session=self.session))
        await self._asks.shown(shown)
        return opened

    async def park(self, token: str, *asks: Ask) -> None:
        for ask in asks:
            self.inbox.close_ask(ask, "parked", may_return=True)
        assert await self.work.settle(self.session, token, TURN.uuid, "parked", "")
        await self.work.release(self.session, token)


class Watcher:
    """Reads `ready()` of a process of its own."""

    def __init__(self, store: SqliteStore | PostgresStore) -> None:
        self._ready = store.ready()

    async def next(self) -> Conversation:
        async with asyncio.timeout(LIMIT):
            return await anext(self._ready)

    async def nothing_before(self, act: Callable[[], Awaitable[object]]) -> Conversation:
        """What comes next, which must not come before `act` was done."""
        coming = asyncio.ensure_future(self.next())
        done, _ = await asyncio.wait({coming}, timeout=0.15)
        assert not done, coming
        await act()
        return await coming

    async def aclose(self) -> None:
        await self._ready.aclose()


@pytest.fixture
async def watcher(place: Place) -> AsyncGenerator[Watcher]:
    async with aclosing(Watcher(place.store())) as made:
        yield made


async def test_a_parked_conversation_is_ready_when_its_ask_is_answered(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    await host.take("a")
    await host.begin("a")
    ask = await host.asked()
    await host.park("a", ask)

    found = await watcher.nothing_before(lambda: place.inbox().answer(ask, Allow(), by="ann"))

    assert (found.key, found.session, found.machine, found.begun) == ("c", "s1", "m", 1)
    assert [(turn.uuid, turn.state) for turn in found.turns] == [("u1", "parked")]


async def test_an_answer_that_came_while_the_owner_parked_counts(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    await host.take("a")
    await host.begin("a")
    ask = await host.asked()
    host.inbox.close_ask(ask, "parked", may_return=True)
    await place.inbox().answer(ask, Allow(), by="ann")
    await host.park("a")

    assert (await watcher.next()).session == "s1"


async def test_a_conversation_whose_owner_was_killed_is_ready_when_its_lease_ends(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    await host.take("a")
    await host.begin("a")
    await host.die("a")
    first = await watcher.next()
    await host.take("b")
    await host.die("b")

    # The second owner was killed, too: nothing of the turns has changed.
    assert await watcher.next() == first


async def test_a_killed_owner_with_an_open_ask_waits_for_the_answer(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    await host.take("a")
    await host.begin("a")
    ask = await host.asked()
    host.inbox.close_ask(ask, "killed", may_return=True)
    await host.die("a")

    found = await watcher.nothing_before(lambda: place.inbox().answer(ask, Allow(), by="ann"))

    assert found.session == "s1"


async def test_an_ask_that_expires_makes_its_conversation_ready(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    host.inbox = place.inbox(expires_after=0.3)
    host._asks.inbox = host.inbox  # pyright: ignore[reportPrivateUsage] - of this file
    await host.take("a")
    await host.begin("a")
    ask = await host.asked()
    await host.park("a", ask)

    assert (await watcher.next()).session == "s1"


async def test_each_is_yielded_once_for_a_change_and_not_for_an_owner_that_did_nothing(
    place: Place, watcher: Watcher
) -> None:
    host, other = Host(place), Host(place, "s2")
    await host.take("a")
    await host.begin("a")
    await host.park("a")
    assert (await watcher.next()).session == "s1"
    await host.take("b")
    await host.work.release("s1", "b")

    async def another() -> None:
        await other.take("c")
        await other.begin("c")
        await other.work.release("s2", "c")

    assert (await watcher.nothing_before(another)).session == "s2"
    await host.take("d")
    await host.begin("d")
    await host.park("d")
    assert (await watcher.next()).session == "s1"


async def test_an_answer_that_the_last_owner_left_unused_makes_nothing_ready_again(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    await host.take("a")
    await host.begin("a")
    unused, ask = await host.asked(), await host.asked(an_ask(OTHER), 2)
    await host.park("a", unused, ask)
    await place.inbox().answer(unused, Allow(), by="ann")
    assert (await watcher.next()).session == "s1"
    # The model makes another call, which waits again, and the owner parks.
    await host.take("b")
    await host.begin("b")
    await host.park("b")

    found = await watcher.nothing_before(lambda: place.inbox().answer(ask, Allow(), by="ann"))

    assert found.session == "s1"


async def test_an_open_ask_of_a_settled_turn_holds_nothing_up(
    place: Place, watcher: Watcher
) -> None:
    host = Host(place)
    await host.take("a")
    await host.begin("a")
    ask = await host.asked()
    host.inbox.close_ask(ask, "the session ends", may_return=True)
    await host.work.settle("s1", "a", "u1", "settled", "interrupted")
    await host.begin("a", StoredTurn("u2", None, "another"))
    await host.work.release("s1", "a")

    assert [turn.uuid for turn in (await watcher.next()).turns] == ["u2"]


async def test_settled_and_owned_conversations_are_not_ready(
    place: Place, watcher: Watcher
) -> None:
    settled, owned = Host(place), Host(place, "s2")
    await settled.take("a")
    await settled.begin("a")
    await settled.work.settle("s1", "a", "u1", "settled", "completed")
    await settled.work.release("s1", "a")
    await owned.take("b")
    await owned.begin("b")

    found = await watcher.nothing_before(lambda: owned.work.release("s2", "b"))

    assert found.session == "s2"


async def test_it_ends_when_the_store_is_closed(place: Place) -> None:
    store = place.store()
    waiting = asyncio.ensure_future(Watcher(store).next())
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done

    await store.aclose()

    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_many_are_yielded_each_once(place: Place, watcher: Watcher) -> None:
    hosts = place.store().work
    for number in range(45):
        session = f"s{number}"
        await hosts.take(session, key="c", owner="a", token="a", machine="m", seconds=LONG)
        await hosts.begin(session, "a", TURN)
        await hosts.release(session, "a")

    found = [await watcher.next() for _ in range(45)]

    assert sorted(each.session for each in found) == sorted(f"s{n}" for n in range(45))
    assert all(each.turns == (TURN,) for each in found)


@pytest.mark.process
async def test_a_change_whose_notification_was_missed_is_seen_soon(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    # The fast tests on newer Pythons have no driver.
    from steersman.stores._sql.postgres_database import Looks, PostgresDatabase  # noqa: PLC0415

    database = PostgresDatabase(postgres_url, 5.0, 1, Looks(early=0.02, late=LIMIT))
    await AskTable(database).last_change()
    loop, seen = asyncio.get_running_loop(), asyncio.Event()

    def changed() -> None:
        loop.call_soon_threadsafe(seen.set)

    async with asyncio.timeout(LIMIT):
        database.observe(changed)
        try:
            await seen.wait()
            schema = postgres_url.rpartition("%3D")[2]
            for _ in range(3):
                seen.clear()
                # Nobody is notified of this.
                postgres_server.run(f"UPDATE {schema}.steersman_ask_changes SET last = last + 1")
                await seen.wait()
            postgres_server.restart()
            seen.clear()
            await seen.wait()
        finally:
            database.stop_observing(changed)
            await database.aclose()
