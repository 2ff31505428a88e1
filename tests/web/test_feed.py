"""The frames of one session, from memory or from its file: each once, in order, or told as lost."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman.journal import Entry, Kind
from steersman.journal.files import Header, Record, line_of
from steersman.testing.faults import VirtualClockLoop
from steersman.web.feed import MEMORY, MOST_BYTES, MOST_FRAMES, Batch, Feed
from steersman.web.routes import ALIVE, EventStream


def entry(seq: int, size: int = 10) -> Entry:
    return Entry(seq, float(seq), Kind.MESSAGE, b'{"a":"%b"}' % (b"b" * size))


def nothing(_entries: Sequence[Entry]) -> None:
    """Listen to nothing."""


def stored(path: Path, entries: Sequence[Entry]) -> None:
    lines = [line_of(Record(each.seq, each.at, each.kind.value, each.line)) for each in entries]
    path.write_bytes(b"".join([line_of(Header(track=0, after=0)), *lines]))


def numbers(batch: Batch) -> list[int]:
    return [json.loads(line)["seq"] for line in batch.text.split("\n") if line]


async def read_all(feed: Feed, after: int = 0) -> list[Batch]:
    batches: list[Batch] = []
    while (batch := await feed.next(after)).upto:
        batches.append(batch)
        after = batch.upto
    return batches


async def test_a_viewer_gets_each_entry_once_also_those_that_memory_has_no_more(
    tmp_path: Path,
) -> None:
    entries = [entry(seq, 100_000) for seq in range(1, 41)]
    feed = Feed("s", tmp_path / "s.jsonl", nothing)
    stored(feed.path, entries)
    for each in entries:
        feed.write([each])

    batches = await read_all(feed)

    assert [seq for batch in batches for seq in numbers(batch)] == [*range(1, 41)]
    assert {batch.lost for batch in batches} == {0}
    assert all(len(batch.text) < MOST_BYTES + 100_100 for batch in batches)
    # What is kept is bounded, and no more than half of it is forgotten at once.
    assert feed.ready(0) is None
    kept = [after for after in range(40) if feed.ready(after) is not None]
    assert MEMORY - 200_000 < 100_000 * len(kept) < 2 * MEMORY
    assert feed.ready(40) == feed.ready(99) == Batch()
    assert (feed.last_seq, feed.last_at) == (40, 40.0)


async def test_a_batch_has_a_bound_of_frames_and_is_made_once_for_all_viewers(
    tmp_path: Path,
) -> None:
    feed = Feed("s", tmp_path / "s.jsonl", nothing)
    feed.write([entry(seq) for seq in range(1, MOST_FRAMES + 11)])

    first, again = feed.ready(0), feed.ready(0)

    assert first is again
    assert first is not None
    assert numbers(first) == [*range(1, MOST_FRAMES + 1)]
    assert first.upto == MOST_FRAMES
    rest = await feed.next(first.upto)
    assert numbers(rest) == [*range(MOST_FRAMES + 1, MOST_FRAMES + 11)]
    feed.write([entry(MOST_FRAMES + 11)])
    assert numbers(await feed.next(first.upto)) == [*range(MOST_FRAMES + 1, MOST_FRAMES + 12)]
    assert json.loads(rest.text.split("\n")[0])["session"] == "s"


async def test_what_is_nowhere_any_more_is_lost_and_what_follows_is_not(tmp_path: Path) -> None:
    feed = Feed("s", tmp_path / "s.jsonl", nothing)
    feed.write([entry(seq) for seq in range(1, 4)])
    # The journal goes on behind entries that were shown, and of which none is left.
    feed.write([entry(seq) for seq in range(8, 10)])
    stored(feed.path, [entry(seq) for seq in (1, 2, 5, 8, 9)])

    found = [(batch.lost, numbers(batch), batch.upto) for batch in await read_all(feed)]

    assert found == [(0, [1, 2, 5], 5), (2, [], 7), (0, [8, 9], 9)]
    feed.path.unlink()
    assert [(batch.lost, batch.upto) for batch in await read_all(feed, 3)] == [(4, 7), (0, 9)]


async def test_an_entry_is_recognised_by_its_time_wherever_it_is_kept(tmp_path: Path) -> None:
    entries = [entry(seq, 400_000) for seq in range(1, 11)]
    path = tmp_path / "s.jsonl"
    stored(path, entries[:1])
    feed = Feed("s", path, nothing)
    assert (feed.last_seq, feed.last_at) == (1, 1.0)
    stored(path, entries)
    feed.write(entries[1:])
    await feed.next(8)

    for seq in (1, 2, 8, 9, 10):
        assert feed.has(seq, float(seq))
        assert not feed.has(seq, seq + 0.5)
    path.unlink()
    assert not feed.has(1, 1.0)


def test_who_watches_is_notified_and_one_that_fails_disturbs_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    heard: list[int] = []
    feed = Feed("s", tmp_path / "s.jsonl", lambda entries: heard.append(len(entries)))

    def broken(_session: str) -> None:
        raise LookupError("it broke")

    feed.add(told.append)
    feed.write([entry(1), entry(2)])
    feed.add(broken)
    with caplog.at_level(logging.ERROR, "steersman.web"):
        feed.write([entry(3)])
    feed.remove(told.append)
    feed.remove(broken)
    feed.remove(broken)
    feed.write([entry(4)])
    feed.close()

    assert heard == [2, 1, 1]
    assert told == ["s", "s"]
    assert "it broke" in caplog.text
    assert feed.last_seq == 4


def test_a_stream_says_that_it_is_alive_and_ends_when_it_is_closed(tmp_path: Path) -> None:
    feed = Feed("s", tmp_path / "s.jsonl", nothing)
    stream = EventStream(feed, 0, is_raw=False)

    async def read() -> None:
        events = stream.events()
        assert await anext(events) == b": follows\n\n"
        began = asyncio.get_running_loop().time()
        assert await anext(events) == b": alive\n\n"
        assert asyncio.get_running_loop().time() - began == ALIVE == 15.0
        feed.write([entry(1)])
        first = await anext(events)
        asyncio.get_running_loop().call_later(1.0, feed.write, [entry(2)])
        second = await anext(events)
        assert asyncio.get_running_loop().time() - began == ALIVE + 1.0
        assert first.startswith(b'id: 1@1.0\ndata: {"session":"s","seq":1,')
        assert first.endswith(b"}\n\n")
        assert second.startswith(b"id: 2@2.0\n")
        asyncio.get_running_loop().call_later(1.0, stream.close)
        assert [each async for each in events] == []

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(read())

    assert not feed._watching  # pyright: ignore[reportPrivateUsage] - nothing is left behind


async def test_a_stream_tells_what_is_lost_before_what_follows(tmp_path: Path) -> None:
    feed = Feed("s", tmp_path / "s.jsonl", nothing)
    feed.write([entry(1), entry(2)])
    feed.write([entry(5)])
    stored(feed.path, [entry(2)])
    events: Any = EventStream(feed, 0, is_raw=True).events()

    found = [await anext(events) for _ in range(4)]
    await events.aclose()

    assert found[1:] == [
        b'event: lagged\ndata: 1\n\nid: 2@2.0\ndata: {"a":"bbbbbbbbbb"}\n\n',
        b"event: lagged\ndata: 2\n\n",
        b'id: 5@5.0\ndata: {"a":"bbbbbbbbbb"}\n\n',
    ]
