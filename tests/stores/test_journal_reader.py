"""Journal files are read from any number on, and while another process writes them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.errors import StoreError, UsageError
from steersman.journal import Entry, Kind
from steersman.stores import JournalFile, follow_journal, read_journal
from steersman.stores.journal_reader import EntryLines

LIMIT = 20.0


def noise(seq: int, size: int = 1) -> Entry:
    return Entry(seq, 1.0, Kind.NOISE, b"x" * size)


def written(path: Path, entries: Sequence[Entry]) -> None:
    sink = JournalFile(path)
    sink.write(entries)
    sink.close()


def numbers(path: Path, after: int = 0) -> list[int]:
    return [entry.seq for entry in read_journal(path, after)]


async def taken(entries: AsyncIterator[Entry], count: int) -> list[int]:
    async with asyncio.timeout(LIMIT):
        return [(await anext(entries)).seq for _ in range(count)]


# From a number on


@settings(max_examples=40, deadline=None)
@given(
    tracks=st.lists(
        st.lists(st.sampled_from([1, 300, 30_000]), min_size=1, max_size=30), min_size=1, max_size=4
    ),
    cuts=st.lists(st.integers(0, 40), min_size=4, max_size=4),
    data=st.data(),
)
def test_any_file_is_read_from_any_number_on(
    tmp_path_factory: pytest.TempPathFactory,
    tracks: list[list[int]],
    cuts: list[int],
    data: st.DataObject,
) -> None:
    """Each session may have been killed in the middle of a line."""
    path = tmp_path_factory.mktemp("from") / "journal.jsonl"
    for sizes, cut in zip(tracks, cuts, strict=False):
        sink = JournalFile(path)
        for size in sizes:
            sink.write([noise(sink.last_seq + 1, size)])
        sink.close()
        os.truncate(path, path.stat().st_size - cut)

    all_numbers = numbers(path)
    after = data.draw(st.integers(0, all_numbers[-1] + 3))

    assert all_numbers == list(range(1, len(all_numbers) + 1))
    assert numbers(path, after) == [seq for seq in all_numbers if seq > after]


def test_the_end_of_a_long_file_is_found_without_reading_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [noise(seq, 100) for seq in range(1, 20_001)])
    tail = path.read_bytes()[-100_000:]
    # What is not read cannot be seen to be broken.
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"#" * (path.stat().st_size // 4))

    assert tail.count(b"\n") > 100
    assert numbers(path, 19_900) == list(range(19_901, 20_001))


@pytest.mark.parametrize("after", [-1, True, 1.0, None, "3"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, after: Any) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [noise(1)])

    with pytest.raises(UsageError, match=r"after: got .*a sequence number, 0 or more"):
        read_journal(path, after)


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("nothing\n" * 10_000)

    with pytest.raises(UsageError, match="a journal of format"):
        read_journal(path, 5)


@given(sizes=st.lists(st.integers(1, 60), max_size=20), cut=st.integers(0, 30))
def test_lines_survive_any_chunking(sizes: list[int], cut: int) -> None:
    lines = [b'{"seq":%d,"at":1.0,"kind":"noise","text":"x"}' % seq for seq in range(1, 6)]
    data = b"\n".join(lines)[: -cut or None]
    reader, found, at = EntryLines(), list[Entry](), 0

    for size in [*sizes, len(data)]:
        found += reader.feed(data[at : at + size])
        at += size
    found += reader.finish()

    assert [entry.seq for entry in found] == [1, 2, 3, 4, 5]
    assert all("torn" not in entry.details for entry in found[:4])


# While it is written


async def test_a_follower_gets_what_is_there_and_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = JournalFile(path)
    sink.write([noise(1), noise(2), noise(3)])

    async with aclosing(follow_journal(path, after=1)) as entries:
        assert await taken(entries, 2) == [2, 3]
        sink.write([noise(4)])
        assert await taken(entries, 1) == [4]
        sink.close()
        written(path, [noise(5)])
        assert await taken(entries, 1) == [5]


async def test_a_line_that_is_not_whole_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [noise(1), noise(2)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])

    async with aclosing(follow_journal(path)) as entries:
        assert await taken(entries, 1) == [1]
        waiting = asyncio.ensure_future(anext(entries))
        await asyncio.wait([waiting], timeout=0.05)
        assert not waiting.done()
        with path.open("ab") as file:
            file.write(whole[-5:])
        async with asyncio.timeout(LIMIT):
            assert (await waiting).seq == 2


async def test_a_line_that_stays_cut_off_is_reported_when_the_next_session_writes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [noise(1), noise(2)])
    os.truncate(path, path.stat().st_size - 5)

    async with aclosing(follow_journal(path)) as entries:
        assert await taken(entries, 1) == [1]
        written(path, [noise(3)])
        async with asyncio.timeout(LIMIT):
            torn, last = await anext(entries), await anext(entries)

    assert (torn.seq, torn.details.get("torn"), last.seq) == (2, True, 3)


async def test_a_file_that_is_still_empty_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = JournalFile(path)

    async with aclosing(follow_journal(path)) as entries:
        first = asyncio.ensure_future(anext(entries))
        await asyncio.sleep(0)
        sink.write([noise(1)])
        async with asyncio.timeout(LIMIT):
            assert (await first).seq == 1
    sink.close()


async def test_a_follower_ends_after_a_time_without_entries(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [noise(1)])

    async with asyncio.timeout(LIMIT):
        assert [entry.seq async for entry in follow_journal(path, idle=0.02)] == [1]


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    other = path.with_name("other.jsonl")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def cut_off(path: Path) -> None:
    os.truncate(path, 10)


@pytest.mark.parametrize(
    ("change", "words"),
    [(remove, "was removed"), (replace, "was replaced by another one"), (cut_off, "was cut off")],
    ids=["removed", "replaced", "cut off"],
)
async def test_a_file_that_is_rotated_is_an_error(tmp_path: Path, change: Any, words: str) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [noise(1)])

    async with aclosing(follow_journal(path)) as entries:
        await taken(entries, 1)
        change(path)
        with pytest.raises(StoreError, match=words):
            await taken(entries, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"after": -1}, "after: got -1"),
        ({"idle": 0}, "idle: got 0"),
        ({"idle": True}, "idle: got True"),
        ({"idle": float("nan")}, "idle: got nan"),
    ],
)
async def test_a_follower_with_bad_arguments_is_refused(
    tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        follow_journal(tmp_path / "journal.jsonl", **arguments)


async def test_a_follower_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("nothing\n")

    with pytest.raises(UsageError, match="a file that can be read"):
        follow_journal(tmp_path / "journal.jsonl")
    with pytest.raises(UsageError, match="a journal of format"):
        await anext(follow_journal(path))


WRITER = """
import sys
from steersman.journal import Entry, Kind
from steersman.stores import JournalFile

sink = JournalFile(sys.argv[1])
print("ready", flush=True)
for first in range(1, 3001, 7):
    size = 70_000 if first % 50 == 1 else 40
    sink.write([Entry(seq, 1.0, Kind.NOISE, b"x" * size) for seq in range(first, first + 7)])
"""


@pytest.mark.process
async def test_a_flood_of_another_process_is_followed_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), stdout=subprocess.PIPE
    )
    async with asyncio.timeout(LIMIT):
        assert writer.stdout is not None
        assert await writer.stdout.readline() == b"ready\n"
        async with aclosing(follow_journal(path)) as entries:
            assert await taken(entries, 3003) == list(range(1, 3004))
        assert await writer.wait() == 0
