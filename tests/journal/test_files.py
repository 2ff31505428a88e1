"""A journal file gives back what was written, also where it was torn or is younger than we are."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import Agent
from steersman.errors import UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import (
    FORMAT,
    TORN,
    Header,
    Record,
    Track,
    is_plain,
    line_of,
    read_line,
    read_tracks,
)
from steersman.testing.script import Script, say, think
from steersman.testing.scripted.cli import ScriptedCLI
from tests.samples import lines, traces

HEADER = Header("0.1.0", "2.1.325", ("--model=sonnet",))

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
JSON_LINES = st.builds(
    lambda value, ascii_: json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "surrogatepass"),
    PLAIN,
    st.booleans(),
)
STRANGE = [b'{"a":"\\ud800"}', b" {}", b"{}\r", b"1e999", b'"\xff"']
RECORDS = st.builds(
    Record,
    seq=st.integers(1, 2**53),
    at=st.floats(0, 2**33),
    kind=st.sampled_from([kind.value for kind in Kind] + ["stderr", "of next year"]),
    line=JSON_LINES | st.binary() | st.sampled_from(STRANGE),
    turns=st.lists(st.text()).map(tuple),
    details=st.dictionaries(st.text(), PLAIN, max_size=3),
)


def file_of(*records: Record, header: Header = HEADER) -> bytes:
    return line_of(header) + b"".join(map(line_of, records))


def message(seq: int, line: bytes = b'{"type":"keep_alive"}') -> Record:
    return Record(seq, 1.5, "message", line)


@given(record=RECORDS)
def test_a_record_is_one_line_and_comes_back_as_it_was(record: Record) -> None:
    line = line_of(record)

    assert line.count(b"\n") == 1
    assert read_line(line.rstrip(b"\n")) == record


@given(records=st.lists(RECORDS, max_size=4), number=st.integers(0, 9))
def test_a_file_gives_back_its_track(records: list[Record], number: int) -> None:
    header = Header("1", "2", ("--tools=", "--model=x"), number)

    (track,) = read_tracks(file_of(*records, header=header))

    assert track == Track(header, tuple(records))


@pytest.mark.parametrize("trace", traces())
def test_what_the_wire_carried_stands_in_the_file_as_it_came(trace: str) -> None:
    strange = [line for line in lines(trace) if b"\\ud8" in line]

    for line in lines(trace):
        assert line in strange or line in line_of(message(1, line))
        assert read_line(line_of(message(1, line))[:-1]) == message(1, line)


async def test_the_journal_of_a_session_survives_the_file() -> None:
    script = Script(think("hm") + say("one", chunks=2), say("two"))
    async with asyncio.timeout(5), Agent(transport=ScriptedCLI(script)).session() as session:
        await (await session.send("first"))
        await (await session.send("second"))
    entries = [each async for each in session.journal() if isinstance(each, Entry)]

    (track,) = read_tracks(file_of(*map(Record.of, entries)))

    found = [record.entry for record in track.records]
    assert [tell(each) for each in found if each is not None] == [tell(each) for each in entries]
    assert {entry.kind for entry in entries} > {Kind.SENT, Kind.PHASE, Kind.SETTLED, Kind.PARTIAL}


def tell(entry: Entry) -> tuple[Any, ...]:
    return entry.seq, entry.at, entry.kind, entry.line, entry.turns, dict(entry.details)


def test_a_file_may_be_torn_anywhere_in_its_last_line() -> None:
    whole = file_of(message(1), message(2))
    begin = len(file_of(message(1)))

    for cut in range(begin + 1, len(whole) - 1):
        (track,) = read_tracks(whole[:cut])

        assert track.is_torn
        assert track.records == (message(1), Record(2, 0.0, TORN, whole[begin:cut]))


def test_a_last_line_that_only_lacks_its_end_is_whole() -> None:
    (track,) = read_tracks(file_of(message(1)).rstrip(b"\n"))

    assert not track.is_torn
    assert track.records == (message(1),)


def test_a_writer_may_go_on_behind_a_torn_line() -> None:
    torn = file_of(message(1))[:-5]

    first, second = read_tracks(torn + b"\n" + file_of(message(2), header=Header(track=1)))

    assert first.is_torn
    assert second == Track(Header(track=1), (message(2),))


def test_tracks_come_in_the_order_they_began_in() -> None:
    later, earlier = Header(track=1), Header(track=0)

    tracks = read_tracks(file_of(message(1), header=later) + file_of(message(2), header=earlier))

    assert [track.header for track in tracks] == [earlier, later]


def test_a_kind_that_is_not_known_here_is_kept_but_is_no_entry() -> None:
    line = b'{"seq":7,"at":1.0,"kind":"of next year","color":"blue","details":{"a":[1]}}'

    record = read_line(line)

    assert record == Record(7, 1.0, "of next year", details={"a": [1]})
    assert isinstance(record, Record)
    assert record.entry is None


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[]", b"null", b'{"seq":1}', b'{"kind":5}', b"not JSON", b'{"kind":"x","base64":"?"}'],
)
def test_a_line_that_is_no_record_is_kept_as_torn(line: bytes) -> None:
    assert read_line(line) == Record(0, 0.0, TORN, line)


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", line_of(message(1)), b"\x89PNG\r\n"])
def test_what_does_not_begin_with_a_header_is_no_journal(data: bytes) -> None:
    with pytest.raises(UsageError, match="begins with a journal header"):
        read_tracks(data)


def test_a_file_of_a_later_format_is_refused_by_its_number() -> None:
    with pytest.raises(UsageError, match=f"format {FORMAT + 1}"):
        read_tracks(line_of(Header(format=FORMAT + 1)))


def test_a_line_is_plain_if_every_reader_of_json_reads_it_alike() -> None:
    plain = [b'{"a": 1}', '{"a": "ü"}'.encode()]
    strange = [b'{"a": "\\ud800"}', b'{"a": "\\uD83D\\uDE00"}', b"{", b"no JSON}"]

    assert [is_plain(line) for line in plain] == [True, True]
    assert [is_plain(line) for line in strange] == [False, False, False, False]
