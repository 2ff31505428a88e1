"""Readers get every entry once and in order, whether it is in memory or only in a sink."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman._session.journal_writer import JournalWriter
from steersman._session.readers import StoredReader
from steersman.journal import Entry, Kind, Lagged
from steersman.ports import Sink
from steersman.stores import JournalFile
from steersman.stores.fan_out import FanOutSink
from steersman.stores.journal_reader import StoredEntries, identity_of

LIMIT = 10.0
LINE = b'{"type":"x"}'


class Kept:
    """A sink that reads back what it has, in batches of that size."""

    def __init__(self, size: int = 3, *, has: Callable[[int], bool] = lambda _: True) -> None:
        self.entries: list[Entry] = []
        self.closings = 0
        self._size = size
        self._has = has

    def write(self, entries: Sequence[Entry]) -> None:
        self.entries += [each for each in entries if self._has(each.seq)]

    def close(self) -> None:
        pass

    async def read(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        found = [each for each in self.entries if each.seq > after]
        try:
            for at in range(0, len(found), self._size):
                await asyncio.sleep(0)
                yield found[at : at + self._size]
        finally:
            self.closings += 1


def writer_to(sink: Sink, memory: int = 1) -> JournalWriter:
    made = JournalWriter(memory, lambda: 1.0)
    made.write_to(sink)
    return made


def reader_of(made: JournalWriter, after: int = 0) -> StoredReader:
    return StoredReader(made.journal, made.signal, made.stored, after=after)


def note(made: JournalWriter, count: int = 1) -> None:
    for _ in range(count):
        made.append(1.0, Kind.NOISE, LINE)
    made.wake()


def shown(found: Entry | Lagged) -> int | str:
    return found.seq if isinstance(found, Entry) else f"lost {found.lost}"


async def all_of(reader: AsyncIterator[Entry | Lagged]) -> list[int | str]:
    async with asyncio.timeout(LIMIT):
        return [shown(each) async for each in reader]


async def test_what_has_left_the_memory_comes_from_the_file(tmp_path: Path) -> None:
    made = writer_to(JournalFile(tmp_path / "journal.jsonl"))
    note(made, 20)
    made.end()

    assert made.journal.lost_after(0) == 19
    assert await all_of(reader_of(made)) == list(range(1, 21))
    assert await all_of(reader_of(made, after=7)) == list(range(8, 21))


async def test_a_reader_of_some_kinds_gets_only_those_from_the_file_and_from_memory(
    tmp_path: Path,
) -> None:
    made = writer_to(JournalFile(tmp_path / "journal.jsonl"), memory=1000)
    for kind in (Kind.MESSAGE, Kind.SENT, Kind.SETTLED, Kind.CONTROL) * 5:
        made.append(1.0, kind, LINE)
    made.end()
    chosen = frozenset({Kind.MESSAGE, Kind.SETTLED})

    reader = StoredReader(made.journal, made.signal, made.stored, after=0, kinds=chosen)

    assert 0 < made.journal.lost_after(0) < 19
    assert await all_of(reader) == list(range(1, 21, 2))


async def test_without_a_sink_that_can_be_read_the_reader_lags() -> None:
    made = JournalWriter(1, lambda: 1.0)
    note(made, 20)
    made.end()

    assert await all_of(reader_of(made)) == ["lost 19", 20]


async def test_entries_of_earlier_sessions_come_first(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    earlier, made = JournalWriter(1, lambda: 1.0), JournalWriter(1, lambda: 1.0)
    for each in (earlier, made):
        await each.open(JournalFile(path), LIMIT)
        note(each, 5)
        each.end()

    assert made.journal.began_after == 5
    assert await all_of(reader_of(made)) == list(range(1, 11))


async def test_what_a_sink_does_not_hold_is_lost_and_nothing_else() -> None:
    made = writer_to(Kept(has=lambda seq: seq not in (1, 5, 6, 18, 19)))
    note(made, 20)
    made.end()

    expected = ["lost 1", 2, 3, 4, "lost 2", *range(7, 18), "lost 2", 20]
    assert await all_of(reader_of(made)) == expected


async def test_more_that_is_lost_while_a_batch_is_read_is_read_too() -> None:
    """The batch from the sink held entries that were in memory when it came."""
    sink = Kept(size=15)
    made = writer_to(sink, memory=10 * 212)
    note(made, 20)
    reader = reader_of(made)

    async with asyncio.timeout(LIMIT):
        first = [shown(await anext(reader)) for _ in range(5)]
        note(made, 30)
        made.end()
        rest = await all_of(reader)

    assert [*first, *rest] == list(range(1, 51))
    assert sink.closings >= 2


async def test_a_sink_that_fails_is_reported_as_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Kept):
        async def read(self, after: int) -> AsyncIterator[Sequence[Entry]]:
            yield [each for each in self.entries if after < each.seq < 4]
            raise ConnectionError("no database")

    made = writer_to(Broken())
    note(made, 9)
    made.end()

    assert await all_of(reader_of(made)) == [1, 2, 3, "lost 5", 9]
    assert "no database" in caplog.text


async def test_a_reader_that_is_cancelled_in_the_middle_loses_nothing() -> None:
    made = writer_to(Kept())
    note(made, 20)
    made.end()
    reader, found = reader_of(made), list[int | str]()

    async with asyncio.timeout(LIMIT):
        for steps in range(40):
            step = asyncio.ensure_future(anext(reader, None))
            for _ in range(steps % 3):
                await asyncio.sleep(0)
            step.cancel()
            try:
                each = await step
            except asyncio.CancelledError:
                continue
            if each is not None:
                found.append(shown(each))
        found += await all_of(reader)

    assert found == list(range(1, 21))


async def test_secrets_are_removed_from_what_comes_from_the_disk_only(tmp_path: Path) -> None:
    file = JournalFile(tmp_path / "journal.jsonl", redact=lambda line: line.replace(b"key", b"-"))
    made = writer_to(file)
    for _ in range(2):
        made.append(1.0, Kind.NOISE, b"the key")
    made.end()

    async with asyncio.timeout(LIMIT):
        found = [each async for each in reader_of(made)]

    assert [each.line for each in found if isinstance(each, Entry)] == [b"the -", b"the key"]


async def test_a_file_that_was_replaced_is_not_read(tmp_path: Path) -> None:
    path, other = tmp_path / "journal.jsonl", tmp_path / "other.jsonl"
    made = writer_to(JournalFile(path))
    note(made, 5)
    other.write_bytes(path.read_bytes())
    other.replace(path)

    made.end()

    assert await all_of(reader_of(made)) == ["lost 4", 5]


async def test_numbers_that_two_sessions_used_are_not_read_back(tmp_path: Path) -> None:
    file = JournalFile(tmp_path / "journal.jsonl")
    one, other = writer_to(file), writer_to(file)
    note(one, 5)
    note(other, 2)
    one.end()

    assert await all_of(reader_of(one)) == ["lost 4", 5]


async def test_the_file_is_read_before_the_sinks_and_a_fan_out_without_any_loses(
    tmp_path: Path,
) -> None:
    file, empty = JournalFile(tmp_path / "journal.jsonl"), Kept(has=lambda _: False)

    async def read_of(sink: FanOutSink) -> list[int | str]:
        made = writer_to(sink)
        note(made, 5)
        made.end()
        return await all_of(reader_of(made))

    def fan_out(*sinks: Kept, file: JournalFile | None = None) -> FanOutSink:
        return FanOutSink(sinks, file=file, redact=lambda line: line, report=print)

    assert await read_of(fan_out(empty, file=file)) == [1, 2, 3, 4, 5]
    assert await read_of(fan_out(Kept())) == [1, 2, 3, 4, 5]
    assert await read_of(fan_out()) == ["lost 4", 5]


class SmallChunks(JournalFile):
    chunk = 100

    def read(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        return StoredEntries(self.path, identity_of(self._file), after, self.chunk)


Steps = st.lists(
    st.tuples(st.sampled_from(["write", "hold", "read", "turn"]), st.integers(1, 30)), max_size=25
)


@settings(max_examples=60, deadline=None)
@given(
    steps=Steps,
    memory=st.integers(1, 6000),
    after=st.integers(0, 20),
    chunk=st.integers(20, 900),
)
def test_any_reading_of_any_writing_has_no_gap_and_no_double(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    memory: int,
    after: int,
    chunk: int,
) -> None:
    file = SmallChunks(tmp_path_factory.mktemp("seam") / "journal.jsonl")
    file.chunk = chunk
    made = writer_to(file, memory)
    readers = {begin: reader_of(made, begin) for begin in (after, 0)}
    found: dict[int, list[int | str]] = {begin: [] for begin in readers}

    async def read(begin: int, most: int) -> None:
        seen = found[begin]
        for _ in range(min(most, made.journal.last_seq - begin - len(seen))):
            seen.append(shown(await anext(readers[begin])))

    async def run() -> None:
        for what, count in steps:
            made.hold_wakeups() if what == "hold" else made.release_wakeups()
            note(made, count if what in ("write", "hold") else 0)
            for begin in readers:
                await read(begin, count if what == "read" else 0)
            await asyncio.sleep(0)
        made.release_wakeups()
        note(made, 21)
        for begin in readers:
            await read(begin, made.journal.last_seq)

    asyncio.run(asyncio.wait_for(run(), LIMIT))
    made.end()

    for begin, seen in found.items():
        assert seen == list(range(begin + 1, made.journal.last_seq + 1))


async def test_a_flood_reaches_slow_and_quick_readers_whole(tmp_path: Path) -> None:
    made = writer_to(JournalFile(tmp_path / "journal.jsonl"), memory=20_000)
    total = 8000

    async def read(pause_every: int) -> list[int | str]:
        found: list[int | str] = []
        async for each in reader_of(made):
            found.append(shown(each))
            if len(found) % pause_every == 0:
                await asyncio.sleep(0)
        return found

    async def flood() -> None:
        for _ in range(total // 100):
            made.append_partials(1.0, [LINE] * 100, ())
            made.wake()
            await asyncio.sleep(0)
        made.end()

    async with asyncio.timeout(60):
        *read_by, _ = await asyncio.gather(read(1), read(50), read(5000), flood())

    assert read_by == [list(range(1, total + 1))] * 3
    assert len(made.journal.after(0, most=total)) < 100
