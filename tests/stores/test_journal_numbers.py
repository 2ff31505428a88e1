"""The numbers of a journal go on over sessions, restarts and kills; a number means one entry."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.errors import ChannelClosed, StartupTimeout, UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import Header, Record, line_of
from steersman.options import Revival, StartupLimits
from steersman.stores import JournalFile, read_journal
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import entries_of
from tests._session.plays import Peers, answer, die
from tests.full_disk import without_room

LIMIT = 10.0


def noise(seq: int) -> Entry:
    return Entry(seq, 1.0, Kind.NOISE, b"x")


def numbers(path: Path, after: int = 0) -> list[int]:
    return [entry.seq for entry in read_journal(path, after)]


def written(path: Path, *batches: Sequence[int]) -> JournalFile:
    sink = JournalFile(path)
    for batch in batches:
        sink.write([noise(seq) for seq in batch])
    sink.close()
    return sink


def last_number(path: Path) -> int:
    sink = JournalFile(path)
    sink.close()
    return sink.last_seq


def talk(**options: Any) -> Agent:
    return Agent(transport=ScriptedCLI(Script(say("Hi."))), **options)


# A file


def test_a_file_knows_its_last_number(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    sink = written(path, [1, 2], [3])

    assert (sink.last_seq, last_number(path), last_number(tmp_path / "new.jsonl")) == (3, 3, 0)


def test_each_track_tells_after_which_number_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = JournalFile(path)
    sink.write([noise(1), Entry(2, 1.0, Kind.RESTARTED), noise(3)])
    sink.close()
    written(path, [4])

    headers = [line for line in path.read_bytes().split(b"\n") if line.startswith(b'{"journal"')]
    assert [line[line.index(b'"after"') :].split(b",")[0] for line in headers] == [
        b'"after":0',
        b'"after":1',
        b'"after":3',
    ]


def test_a_file_that_gets_the_inode_of_one_that_failed_has_numbers_of_its_own(
    tmp_path: Path,
) -> None:
    path, other = tmp_path / "journal.jsonl", tmp_path / "other.jsonl"
    sink = JournalFile(path)
    sink.write([noise(1)])
    with without_room(path.stat().st_size):
        sink.write([noise(2), noise(3)])
    sink.close()

    assert (sink.failure != "", last_number(path)) == (True, 3)
    # As a file system does it, for the next file that is made after one was removed.
    path.rename(other)
    os.truncate(other, 0)
    assert last_number(other) == 0


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_has_a_number_of_its_own(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [1, 2, 3])
    os.truncate(path, path.stat().st_size - cut)

    sink = JournalFile(path)
    sink.write([noise(sink.last_seq + 1)])
    sink.close()

    assert numbers(path) == [1, 2, 3, 4]


def test_a_header_that_was_cut_off_has_a_number_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [1, 2])
    with path.open("ab") as file:
        file.write(line_of(Header(track=1, after=2))[:20])

    sink = JournalFile(path)
    sink.write([noise(sink.last_seq + 1)])
    sink.close()

    assert numbers(path) == [1, 2, 3, 4]
    assert b'"track":1' in path.read_bytes()


def test_killed_twice_at_its_first_entry_uses_no_number_twice(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [1, 2])
    for _ in range(2):
        written(path, [last_number(path) + 1])
        os.truncate(path, path.stat().st_size - 4)
    written(path, [last_number(path) + 1])

    assert numbers(path) == [1, 2, 3, 4, 5]


def test_a_file_of_an_earlier_release_goes_on_after_its_greatest_number(tmp_path: Path) -> None:
    """There each session began with number 1."""
    path = tmp_path / "journal.jsonl"
    sessions = [(0, 50), (1, 7)]
    path.write_bytes(
        b"".join(
            line_of(Header(track=track)) + b"".join(line_of(Record.of(noise(seq))) for seq in seqs)
            for track, last in sessions
            for seqs in [range(1, last + 1)]
        )
    )

    sink = JournalFile(path)
    assert sink.last_seq == 50
    sink.write([noise(51)])
    sink.close()

    assert last_number(path) == 51
    assert numbers(path, 5) == [*range(6, 51), 6, 7, 51]


def test_no_entry_of_a_long_file_of_an_earlier_release_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(
        b"".join(
            line_of(Header(track=track))
            + b"".join(line_of(Record.of(noise(seq))) for seq in range(1, last + 1))
            for track, last in ((0, 3000), (1, 9000))
        )
    )

    assert numbers(path, 2500) == [*range(2501, 3001), *range(2501, 9001)]


def test_sessions_that_share_a_file_at_once_do_not_make_it_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = written(path, [1, 2, 3], [2, 3], [4, 5], [4])

    assert numbers(path) == [1, 2, 3, 2, 3, 4, 5, 4]
    assert numbers(path, 3) == [4, 5, 4]
    assert (sink.last_seq, last_number(path)) == (5, 5)


KILLED = """
import os, signal, sys
from steersman.journal import Entry, Kind
from steersman.stores import JournalFile

sink = JournalFile(sys.argv[1])
for seq in range(sink.last_seq + 1, sink.last_seq + 4):
    sink.write([Entry(seq, 1.0, Kind.NOISE, b"x")])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.process
def test_a_killed_writer_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=30, check=False)
        assert ended.returncode == -signal.SIGKILL

    assert numbers(path) == [1, 2, 3, 4, 5, 6]


# A session


async def test_two_sessions_one_after_the_other_share_one_count(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    last = list[int]()
    async with asyncio.timeout(LIMIT):
        for _ in range(2):
            async with talk(journal=path).session() as session:
                await (await session.send("go"))
            last.append(session.last_seq)

    assert last[1] > last[0]
    assert numbers(path) == list(range(1, last[1] + 1))


async def test_a_session_reads_its_old_entries_and_those_of_earlier_sessions_from_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.jsonl"

    seen, last = list[list[int]](), 0
    async with asyncio.timeout(LIMIT):
        for _ in range(2):
            async with talk(journal=path, journal_memory=1).session() as session:
                await (await session.send("go"))
            last = session.last_seq
            for after in (None, 0, 3):
                found = [each async for each in session.journal(after=after)]
                seen.append([each.seq for each in found if isinstance(each, Entry)])

    first = seen[0][-1]
    assert seen[:3] == [numbers(path)[:first]] * 2 + [numbers(path, 3)[: first - 3]]
    assert seen[3:] == [numbers(path, first), numbers(path), numbers(path, 3)]
    assert numbers(path) == list(range(1, last + 1))


async def test_numbers_go_on_over_restarts_of_the_cli_and_the_next_session(tmp_path: Path) -> None:
    path, last = tmp_path / "journal.jsonl", 0

    async with asyncio.timeout(LIMIT):
        for _ in range(2):
            agent = Agent(transport=Peers(die, answer), revive=Revival(backoff=0.0), journal=path)
            async with agent.session() as session:
                await (await session.send("go"))
            last = session.last_seq

    assert numbers(path) == list(range(1, last + 1))
    assert path.read_bytes().count(b'{"journal":') == 4


async def test_a_file_that_a_living_session_writes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async with asyncio.timeout(LIMIT), talk(journal=path).session() as session:
        with pytest.raises(UsageError, match="in use"):
            await talk(journal=path).session().__aenter__()
        await (await session.send("go"))

    assert numbers(path) == list(range(1, session.last_seq + 1))


class Counted:
    """A sink that knows a last number, and is opened first."""

    def __init__(self, last_seq: Any = 0, *, opens: Any = None) -> None:
        self.last_seq = last_seq
        self.entries: list[Entry] = []
        self.opened = 0
        self._opens = opens

    async def open(self) -> None:
        self.opened += 1
        if self._opens is not None:
            await self._opens()

    def write(self, entries: Sequence[Entry]) -> None:
        self.entries += entries

    def close(self) -> None:
        pass


async def test_a_session_counts_on_from_the_greatest_number_of_its_sinks(tmp_path: Path) -> None:
    path, sinks = tmp_path / "journal.jsonl", [Counted(40), Counted(700), Counted()]
    written(path, [1, 2, 3])

    async with asyncio.timeout(LIMIT):
        async with talk(journal=path, sinks=sinks).session() as session:
            await (await session.send("go"))
            seen = session.messages()
            assert await anext(seen)
        kept = [entry.seq for entry in await entries_of(session)]

    assert kept == list(range(701, session.last_seq + 1))
    assert [[each.seq for each in sink.entries] for sink in sinks] == [kept] * 3
    assert numbers(path) == [1, 2, 3, *kept]
    assert [sink.opened for sink in sinks] == [1, 1, 1]


async def test_a_number_that_a_sink_asks_for_is_read_after_it_was_opened() -> None:
    async def ask() -> None:
        await asyncio.sleep(0)
        sink.last_seq = 9

    sink = Counted(opens=ask)

    async with asyncio.timeout(LIMIT), talk(journal=sink).session():
        pass

    assert sink.entries[0].seq == 10


@pytest.mark.parametrize("number", [-1, None, True, "7"])
async def test_a_last_number_that_is_none_is_refused(number: Any) -> None:
    with pytest.raises(UsageError, match=r"Counted\.last_seq: got"):
        await talk(journal=Counted(number)).session().__aenter__()


async def test_a_sink_that_cannot_be_opened_keeps_the_session_from_starting(
    tmp_path: Path,
) -> None:
    async def fail() -> None:
        raise ConnectionError("no database")

    path = tmp_path / "journal.jsonl"
    session = talk(journal=path, sinks=[Counted(opens=fail)]).session()
    with pytest.raises(ConnectionError, match="no database"):
        await session.__aenter__()
    await session.aclose()

    JournalFile(path).close()


async def test_a_sink_that_is_not_open_in_time_keeps_the_session_from_starting() -> None:
    sink = Counted(opens=asyncio.Event().wait)
    agent = talk(journal=sink, startup=StartupLimits(spawn=0.01))

    with pytest.raises(StartupTimeout, match=r"not open after 0\.01 s"):
        await agent.session().__aenter__()


async def test_a_session_that_is_closed_while_a_sink_opens_starts_nothing() -> None:
    opening, may_go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        opening.set()
        await may_go_on.wait()

    transport = ScriptedCLI(Script(say("Hi.")))
    session = Agent(transport=transport, journal=Counted(opens=wait)).session()
    starting = asyncio.Task(session.__aenter__())
    async with asyncio.timeout(LIMIT):
        await opening.wait()
        with pytest.raises(UsageError, match="not started before"):
            await session.__aenter__()
        closing = asyncio.Task(session.aclose())
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(ChannelClosed):
            await starting
        await closing

    assert session.phase.is_over
