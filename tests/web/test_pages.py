from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.journal.files import Header, Record, line_of
from steersman.stores import read_journal
from steersman.web import records
from steersman.web.records import last_of, record_at, records_after, records_before

KINDS = st.sampled_from(["message", "partial", "phase", "torn"])
SIZES = st.sampled_from([1, 50, 3000, 70_000])


def written(path: Path, entries: list[tuple[str, int]], *, tail: bytes = b"") -> list[int]:
    """Write a journal with these kinds and sizes; returns the numbers of all entries."""
    lines = [line_of(Header(track=0, after=0))]
    for seq, (kind, size) in enumerate(entries, 1):
        if kind == "torn":
            # A killed writer: the next track goes on behind the number of the torn line.
            lines.append(b'{"at":' + b"x" * size + b"\n")
            lines.append(line_of(Header(track=1, after=seq)))
        else:
            lines.append(line_of(Record(seq, float(seq), kind, b'{"a":"%b"}' % (b"b" * size))))
    path.write_bytes(b"".join(lines) + tail)
    return [*range(1, len(entries) + 1)]


@given(
    entries=st.lists(st.tuples(KINDS, SIZES), max_size=12),
    after=st.integers(0, 14),
    most=st.integers(1, 14),
)
def test_records_are_read_by_number_forwards_and_backwards(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, int]], after: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("j") / "journal.jsonl"
    numbers = written(path, entries, tail=b'{"seq":99,"at":1.0,"kind":"mess')
    whole = [seq for seq, (kind, _) in enumerate(entries, 1) if kind != "partial"]

    later = records_after(path, after, most, 10**9)
    older, more = records_before(path, after, most)

    assert [seq for seq, _ in later] == [seq for seq in numbers if seq > after][:most]
    assert all(json.loads(line)["seq"] == seq for seq, line in later)
    before = [seq for seq in whole if seq < after]
    assert [seq for seq, _ in older] == before[-most:]
    assert more == (len(before) > most)
    assert last_of(path).seq == (numbers[-1] if numbers else 0)


def test_the_newest_records_come_without_a_number(tmp_path: Path) -> None:
    written(tmp_path / "j", [("message", 10)] * 5 + [("partial", 10)])

    found, more = records_before(tmp_path / "j", None, 2)

    assert [seq for seq, _ in found] == [4, 5]
    assert more


def test_numbers_are_found_in_a_large_file_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, [("message", 2000)] * 2000)

    assert [seq for seq, _ in records_after(path, 1500, 3)] == [1501, 1502, 1503]
    assert [seq for seq, _ in records_before(path, 1500, 3)[0]] == [1497, 1498, 1499]
    found = record_at(path, 777)
    assert found is not None
    assert json.loads(found)["seq"] == 777
    assert record_at(path, 2001) is None


def test_a_line_of_megabytes_is_read_backwards_whole(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, [("message", 10), ("message", 9 * records.CHUNK), ("message", 10)])

    found, _ = records_before(path, None, 10)

    assert [len(line) > 2_000_000 for _, line in found] == [False, True, False]


def test_a_torn_line_has_the_number_and_the_kind_that_read_journal_gives_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j"
    written(path, [("message", 10), ("torn", 10), ("message", 10)])

    ours = [json.loads(line) for _, line in records_after(path, 0, 9)]

    theirs = [(entry.seq, entry.kind.value, bool(entry.details)) for entry in read_journal(path)]
    assert [(each["seq"], each["kind"], "details" in each) for each in ours] == theirs


def test_a_file_that_is_not_there_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "none"

    assert records_after(path, 0, 5) == []
    assert records_before(path, None, 5) == ([], False)
    assert last_of(path).seq == 0
