"""A journal that several sinks get, and what happens if one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.errors import UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import Record
from steersman.options import Options, Revival
from steersman.stores import JournalFile, read_journal
from steersman.stores.fan_out import FanOutSink
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import entries_of
from tests._session.plays import Peers, answer, die
from tests.full_disk import without_room

LIMIT = 10.0
SECRET = "sk-ant-" + "this-is-not-a-key"


class Kept:
    """A sink in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.closings = 0

    def write(self, entries: Sequence[Entry]) -> None:
        self.entries += entries

    def close(self) -> None:
        self.closings += 1


class Failing(Kept):
    """A sink that raises instead of keeping an entry of that kind."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self._kind = kind

    def write(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind is self._kind:
                raise OSError("the network is away")
            self.entries.append(entry)


def plain(entries: Sequence[Entry]) -> list[Record]:
    return [Record.of(entry) for entry in entries]


def entry(seq: int, line: bytes = b"{}", **details: Any) -> Entry:
    return Entry(seq, 1.0, Kind.MESSAGE, line, (), details)


def unchanged(line: bytes) -> bytes:
    return line


def without_secret(line: bytes) -> bytes:
    return line.replace(SECRET.encode(), b"[redacted]") if SECRET.encode() in line else line


def fanned_out(
    *sinks: Kept,
    report: Callable[[str], None] = print,
    redact: Callable[[bytes], bytes] = unchanged,
) -> FanOutSink:
    return FanOutSink(sinks, redact=redact, report=report)


# The sink by itself


def test_every_sink_gets_every_entry_in_order() -> None:
    sinks = [Kept(), Kept()]
    together = fanned_out(*sinks)

    together.write([entry(1), entry(2)])
    together.write([entry(3)])

    assert [[each.seq for each in sink.entries] for sink in sinks] == [[1, 2, 3]] * 2


def test_one_that_raises_is_reported_once_and_gets_no_more() -> None:
    bad, good, reports = Failing(Kind.MESSAGE), Kept(), list[str]()
    together = fanned_out(bad, good, report=reports.append)

    together.write([entry(1)])
    together.write([entry(2)])

    assert reports == ["Failing.write() raised OSError: it gets no more entries"]
    assert [each.seq for each in good.entries] == [1, 2]
    assert bad.entries == []


def test_a_report_that_is_journalled_comes_after_what_it_is_about() -> None:
    """The report is written while the entries before it are still being passed on."""
    last = Kept()
    together = fanned_out(Failing(Kind.MESSAGE), last, report=lambda _: together.write([entry(2)]))

    together.write([entry(1)])

    assert [each.seq for each in last.entries] == [1, 2]


def test_a_report_that_raises_hurts_no_one() -> None:
    good = Kept()

    def report(_what: str) -> None:
        raise RuntimeError("no")

    fanned_out(Failing(Kind.MESSAGE), good, report=report).write([entry(1)])

    assert [each.seq for each in good.entries] == [1]


def test_the_file_is_closed_and_the_callers_sinks_are_not() -> None:
    sink, file = Kept(), Kept()
    together = FanOutSink([sink], file=file, redact=unchanged, report=print)

    together.close()
    together.close()
    together.write([entry(1)])

    assert (sink.closings, file.closings) == (0, 2)
    assert sink.entries == []


def test_secrets_are_left_out_and_other_entries_are_the_same_objects() -> None:
    sink = Kept()
    clean, line, details = entry(1, a="b"), entry(2, SECRET.encode()), entry(3, token=SECRET)

    fanned_out(sink, redact=without_secret).write([clean, line, details])

    assert sink.entries[0] is clean
    assert sink.entries[1].line == b"[redacted]"
    assert dict(sink.entries[2].details) == {"token": "[redacted]"}
    assert dict(details.details) == {"token": SECRET}


def test_details_that_are_no_json_are_not_passed_on_in_part() -> None:
    sink = Kept()

    fanned_out(sink).write([entry(1, what=object())])

    (found,) = sink.entries
    assert (found.line, dict(found.details)) == (b"[redacted]", {"unwritable": "TypeError"})


# In a session


async def test_two_sinks_get_what_the_file_gets(tmp_path: Path) -> None:
    path, sinks = tmp_path / "journal.jsonl", [Kept(), Kept()]
    agent = Agent(transport=ScriptedCLI(Script(say("Hi."))), journal=path, sinks=sinks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    kept = plain(list(read_journal(path)))
    assert kept == plain(await entries_of(session))
    assert [plain(sink.entries) for sink in sinks] == [kept, kept]
    assert [sink.closings for sink in sinks] == [0, 0]


async def test_a_journal_may_be_a_sink() -> None:
    sink = Kept()
    agent = Agent(transport=ScriptedCLI(Script(say("Hi."))), journal=sink)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert plain(sink.entries) == plain(await entries_of(session))


async def test_a_sink_that_raises_leaves_the_turn_as_it_is_and_is_reported(
    tmp_path: Path,
) -> None:
    path, bad, good = tmp_path / "journal.jsonl", Failing(Kind.MESSAGE), Kept()
    agent = Agent(transport=ScriptedCLI(Script(say("Hi."))), journal=path, sinks=[bad, good])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))
    entries = await entries_of(session)

    assert (result.outcome, result.text) == ("completed", "Hi.")
    assert [dict(each.details) for each in entries if each.kind is Kind.FAULT] == [
        {
            "where": "journal file",
            "error": "Failing.write() raised OSError: it gets no more entries",
        }
    ]
    assert plain(good.entries) == plain(list(read_journal(path))) == plain(entries)


async def test_a_full_disk_leaves_the_other_sinks_as_they_are(tmp_path: Path) -> None:
    path, sink = tmp_path / "journal.jsonl", Kept()
    agent = Agent(transport=ScriptedCLI(Script(say("Hi."))), journal=path, sinks=[sink])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        with without_room(path.stat().st_size + 300):
            await (await session.send("go"))
    entries = await entries_of(session)

    assert [each.details["where"] for each in entries if each.kind is Kind.FAULT] == [
        "journal file"
    ]
    assert plain(sink.entries) == plain(entries)


async def test_a_sink_gets_the_entries_of_the_session_and_of_its_fork() -> None:
    sink = Kept()
    agent = Agent(transport=ScriptedCLI(Script(say("One."), say("Two."))), journal=sink)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        async with session.fork() as fork:
            await (await fork.send("and now"))

    both = [*plain(await entries_of(session)), *plain(await entries_of(fork))]
    assert sorted(map(repr, plain(sink.entries))) == sorted(map(repr, both))
    assert sink.closings == 0


async def test_a_sink_gets_the_entries_after_a_restart(tmp_path: Path) -> None:
    """A `JournalFile` that the caller opened begins a track of its own, as for a path."""
    path, kept = tmp_path / "journal.jsonl", Kept()
    file = JournalFile(path)
    agent = Agent(
        transport=Peers(die, answer),
        revive=Revival(backoff=0.0),
        journal=file,
        sinks=[kept],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
    file.close()
    entries = await entries_of(session)

    assert Kind.RESTARTED in [each.kind for each in kept.entries]
    assert plain(kept.entries) == plain(list(read_journal(path))) == plain(entries)
    assert path.read_bytes().count(b'{"journal":') == 2


async def test_known_secrets_do_not_reach_a_sink() -> None:
    sink = Kept()
    agent = Agent(
        transport=ScriptedCLI(Script(say(f"the key is {SECRET}"))),
        sinks=[sink],
        env={"ANTHROPIC_API_KEY": SECRET},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert SECRET.encode() not in b"".join(each.line for each in sink.entries)
    assert b"the key is [redacted]" in b"".join(each.line for each in sink.entries)


SAME = Kept()


@pytest.mark.parametrize(
    "options", [{"sinks": [SAME, SAME]}, {"journal": SAME, "sinks": [SAME]}], ids=["sinks", "both"]
)
def test_the_same_sink_twice_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="sinks: got the same sink twice"):
        Options(**options)
