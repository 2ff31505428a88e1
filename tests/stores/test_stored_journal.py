"""Journals in SQLite and PostgreSQL: written in batches, read from any process."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.errors import StoreError, UsageError
from steersman.journal import Entry, Kind
from steersman.ports import Conversation
from steersman.stores import PostgresStore, SqliteStore
from steersman.testing.contracts.sinks import (
    SINK_CONTRACTS,
    SinkContract,
    SinkUnderTest,
)
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI

LIMIT = 10.0
Store = SqliteStore | PostgresStore
Make = Callable[[], Store]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "work.db")
    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url)


@pytest.fixture
async def stores(make_store: Make) -> AsyncIterator[Iterator[Store]]:
    made: list[Store] = []

    def each() -> Iterator[Store]:
        while True:
            made.append(make_store())
            yield made[-1]

    yield each()
    for store in made:
        await store.aclose()


def message(seq: int, size: int = 0) -> Entry:
    line = b'{"type":"assistant","text":"%b"}' % (b"x" * size)
    return Entry(seq, float(seq), Kind.MESSAGE, line, ("u1",))


async def numbers(entries: Any) -> list[int]:
    return [entry.seq async for entry in entries]


@pytest.mark.parametrize("contract", SINK_CONTRACTS, ids=lambda each: each.__name__)
def test_a_sink_of_a_store_keeps_its_contract(contract: SinkContract, make_store: Make) -> None:
    names = itertools.count()

    def make() -> SinkUnderTest:
        name, store = f"c{next(names)}", make_store()
        sink = store.sink(name)

        async def read() -> list[Entry]:
            await store.aclose()
            reader = make_store()
            found = [entry async for entry in reader.entries(name)]
            await reader.aclose()
            return found

        return SinkUnderTest(sink, lambda: asyncio.run(read()))

    contract(make)


async def test_another_process_reads_from_a_number_on_and_follows(stores: Iterator[Store]) -> None:
    writer, reader = next(stores), next(stores)
    sink = writer.sink(Conversation("c 7", "s1", "m"))
    sink.write([message(seq) for seq in range(1, 1203)])
    await sink.flush()

    assert await numbers(reader.entries("c 7", after=1000)) == [*range(1001, 1203)]
    assert await numbers(reader.entries("another")) == []
    async with asyncio.timeout(LIMIT), aclosing(reader.follow("c 7", after=1200)) as following:
        assert [(await anext(following)).seq for _ in range(2)] == [1201, 1202]
        sink.write([message(1203)])
        assert (await anext(following)).seq == 1203


async def test_numbers_go_on_in_the_next_process(stores: Iterator[Store]) -> None:
    first, second = next(stores).sink("c"), next(stores).sink("c")
    await first.open()
    assert first.last_seq == 0
    first.write([message(1), message(2)])
    await first.flush()

    await second.open()

    assert (first.last_seq, second.last_seq) == (2, 2)
    second.write([message(3)])
    assert [[each.seq for each in chunk] async for chunk in second.read(1)] == [[2, 3]]


async def test_two_sessions_write_one_journal_without_secrets_and_read_what_was_before(
    stores: Iterator[Store],
) -> None:
    reader, found = next(stores), list[Entry]()
    for _ in range(2):
        sink = next(stores).sink("c")
        transport = ScriptedCLI(Script(say("Hi, hunter2secret.")))
        agent = Agent(transport=transport, journal=sink, env={"API_KEY": "hunter2secret"})
        async with asyncio.timeout(LIMIT), agent.session() as session:
            await (await session.send("hello"))
            # What was before is read from the store.
            first = await anext(session.journal(after=0))
            assert isinstance(first, Entry)
            assert first.seq == 1
        await sink.flush()
        found = [entry async for entry in reader.entries("c")]

    assert [entry.seq for entry in found] == [*range(1, len(found) + 1)]
    assert sum(entry.kind is Kind.SETTLED for entry in found) == 2
    assert not any(b"hunter2secret" in entry.line for entry in found)


async def test_a_number_is_stored_once_and_what_is_left_out_is_told(
    stores: Iterator[Store], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "steersman.stores")
    store = next(stores)
    lost: list[int] = []
    for size in (1, 1, 2):
        sink = store.sink("c")
        sink.write([message(1, size), message(2), message(3, size)])
        await sink.flush()
        lost.append(sink.lost)

    kept = [message(1, 1).line, message(2).line, message(3, 1).line]
    assert [entry.line async for entry in store.entries("c")] == kept
    assert lost == [0, 0, 2]
    assert [record.getMessage() for record in caplog.records] == [
        "the journal of 'c' loses entries: another session writes it at the same time"
    ]


async def test_numbers_of_entries_that_wait_or_are_lost_are_not_given_again(tmp_path: Path) -> None:
    folder = tmp_path / "away"
    store = SqliteStore(folder / "work.db")
    sink = store.sink("c", memory=3000)
    sink.write([message(1, 1000)])
    with pytest.raises(StoreError):
        await sink.flush()
    sink.write([message(2, 1000), message(3, 1000)])
    assert sink.lost == 1
    sink.close()

    folder.mkdir()
    again = store.sink("c")
    async with asyncio.timeout(LIMIT):
        await again.open()
        assert again.last_seq == 3
        again.write([message(4)])
        await again.flush()
        await sink.flush()

    assert await numbers(store.entries("c")) == [1, 2, 4]
    await store.aclose()


async def test_closing_the_store_writes_what_waits(stores: Iterator[Store]) -> None:
    writer, reader = next(stores), next(stores)
    sink = writer.sink("c")
    sink.write([message(1)])

    await writer.aclose()
    sink.write([message(2)])

    assert await numbers(reader.entries("c")) == [1]
    assert sink.lost == 1
    assert "closed" in sink.failure


async def test_while_the_store_is_away_entries_wait_and_one_report_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "away"
    store = SqliteStore(folder / "work.db")
    sink = store.sink("c", memory=3000)
    caplog.set_level(logging.WARNING, "steersman.stores")
    sink.write([message(1, 1000)])
    with pytest.raises(StoreError):
        await sink.flush()
    sink.write([message(2, 1000), message(3, 1000), message(4, 10)])
    assert sink.lost == 1
    assert str(folder) in sink.failure

    folder.mkdir()
    async with asyncio.timeout(LIMIT):
        while sink.failure:  # noqa: ASYNC110 - the thread of the store does it
            await asyncio.sleep(0.005)
    await sink.flush()

    assert await numbers(store.entries("c")) == [1, 2, 4]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the journal of 'c' cannot be written",
        "the journal of 'c' is written again; entries lost so far",
    ]
    await store.aclose()


async def test_a_store_that_is_closed_while_it_is_away_gives_up(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "away" / "work.db")
    sink = store.sink("c")
    sink.write([message(1)])

    async with asyncio.timeout(LIMIT):
        await store.aclose()

    assert sink.lost == 1
    sink.write([message(2)])
    assert sink.lost == 1


async def test_a_row_that_cannot_be_read_is_told_and_one_of_a_later_release_left_out(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "work.db")
    sink = store.sink("c")
    sink.write([message(seq) for seq in range(1, 5)])
    await sink.flush()
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE steersman_journals SET entry = 'x{' WHERE seq = 2")
        later = '{"seq":4,"at":1.0,"kind":"of a later release"}'
        connection.execute("UPDATE steersman_journals SET entry = ? WHERE seq = 4", (later,))

    found = [(entry.seq, entry.kind) async for entry in store.entries("c")]

    assert found == [(1, Kind.MESSAGE), (2, Kind.NOISE), (3, Kind.MESSAGE)]
    async with asyncio.timeout(LIMIT), aclosing(store.follow("c", after=3)) as following:
        coming = asyncio.ensure_future(anext(following))
        sink.write([message(5)])
        assert (await coming).seq == 5
    await store.aclose()


async def test_what_is_given_must_be_a_conversation_and_a_number(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "work.db")
    wrong: Any
    for wrong in ("", None, 5):
        with pytest.raises(UsageError, match="conversation"):
            store.sink(wrong)
    for wrong in (-1, True, 1.5):
        with pytest.raises(UsageError, match="memory"):
            store.sink("c", memory=wrong)
    for wrong in (-1, True, "1"):
        with pytest.raises(UsageError, match="after"):
            await numbers(store.entries("c", after=wrong))
