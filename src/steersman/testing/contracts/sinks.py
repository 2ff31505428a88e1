"""The contract of the port `Sink`, as functions that a test calls for an adapter.

Write a factory for your sink; one `parametrize` runs every contract with it:

    def make() -> SinkUnderTest:
        sink = MySink()
        return SinkUnderTest(sink, read=lambda: sink.entries)

    @pytest.mark.parametrize("contract", SINK_CONTRACTS, ids=lambda each: each.__name__)
    def test_contract(contract: SinkContract) -> None:
        contract(make)

A contract that does not hold raises `AssertionError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from steersman.journal import Entry, Kind
from steersman.ports import Sink


@dataclass(frozen=True, slots=True)
class SinkUnderTest:
    """A new sink, and what a contract must know about it."""

    sink: Sink
    read: Callable[[], Iterable[Entry]]
    """Return all stored entries; called after `close`."""
    fail: Callable[[], None] | None = None
    """Make every later write fail, such as by closing the file. `None`: this cannot be tested."""
    reports: Callable[[], Sequence[str]] | None = None
    """Return the failures that the sink has reported so far."""


MakeSink: TypeAlias = Callable[[], SinkUnderTest]
"""Makes a sink with an empty place of its own at each call."""
SinkContract: TypeAlias = Callable[[MakeSink], None]


def entries_are_kept_in_order(make: MakeSink) -> None:
    """Entries that are written one by one are stored in the order of the writes."""
    entries = [_message(seq) for seq in range(1, 30)]

    _check_stored(make(), *([each] for each in entries))


def a_batch_is_kept_whole(make: MakeSink) -> None:
    """All entries of a batch are stored, and batches of any size follow each other."""
    entries = [_message(seq) for seq in range(1, 611)]

    _check_stored(make(), entries[:1], entries[1:600], entries[600:])


def an_empty_batch_stores_nothing(make: MakeSink) -> None:
    """A batch without entries is allowed and stores nothing."""
    _check_stored(make(), [], [_message(1)], [])


def every_kind_of_entry_is_kept(make: MakeSink) -> None:
    """Entries of all kinds keep their time, line, turns and details."""
    details = {"text": "a\u2028b", "number": 1.5, "nested": {"list": [1, None, True]}}

    _check_stored(
        make(),
        [
            Entry(seq, 1e9 + seq / 8, kind, b'{"type":"x"}', ("u1", "u2"), details)
            for seq, kind in enumerate(Kind, start=1)
        ],
    )


def a_line_of_any_bytes_is_kept(make: MakeSink) -> None:
    """A line may be empty, no JSON, no UTF-8, a lone surrogate, or hold a newline."""
    lines = [
        b"",
        b"not JSON",
        b"\xff\xfe\x00",
        b'{"a":"\\ud800"}',
        b'{"a":\n1}',
        b' {"a":1} ',
        '{"a":"\u2028"}'.encode(),
        b'{"a":"' + b"x" * 200_000 + b'"}',
    ]

    for kind in (Kind.MESSAGE, Kind.PARTIAL, Kind.NOISE):
        _check_stored(
            make(), [Entry(seq, 1.0, kind, line) for seq, line in enumerate(lines, start=1)]
        )


def the_batch_may_change_after_the_write(make: MakeSink) -> None:
    """A sink does not keep the sequence that it is given: the caller may use the list again."""
    made, batch = make(), [_message(1)]

    made.sink.write(batch)
    batch.clear()
    batch.append(_message(2))
    made.sink.write(batch)
    batch.clear()
    made.sink.close()

    _check_equal(made.read(), [_message(1), _message(2)], "a list that was changed after the write")


def entries_are_left_as_they_are(make: MakeSink) -> None:
    """A sink changes no field of an entry: readers of the session hold the same objects."""
    made, entries = make(), [_message(1), Entry(2, 2.0, Kind.FAULT, details={"where": "a hook"})]
    before = [_fields(each) for each in entries]

    made.sink.write(entries)
    made.sink.close()

    if [_fields(each) for each in entries] != before:
        raise AssertionError("the sink has changed the entries that it was given")


def details_that_cannot_be_stored_do_not_raise(make: MakeSink) -> None:
    """An entry whose details the sink cannot store does not raise, nor stop the next ones."""
    made = make()

    made.sink.write([Entry(1, 1.0, Kind.FAULT, details={"value": object()})])
    made.sink.write([_message(2)])
    made.sink.close()

    found = [each for each in made.read() if each.seq != 1]
    _check_equal(found, [_message(2)], "the entries after one that cannot be stored")


def closing_again_changes_nothing(make: MakeSink) -> None:
    """A sink may be closed any number of times, also before the first write."""
    unused, used = make(), make()

    for _ in range(3):
        unused.sink.close()
    used.sink.write([_message(1)])
    for _ in range(3):
        used.sink.close()

    _check_equal(used.read(), [_message(1)], "a sink that was closed three times")


def a_write_after_the_close_stores_nothing(make: MakeSink) -> None:
    """A write after the close is ignored and does not raise."""
    made = make()

    made.sink.write([_message(1)])
    made.sink.close()
    made.sink.write([_message(2)])
    made.sink.close()

    _check_equal(made.read(), [_message(1)], "a write after the close")


def two_sinks_do_not_mix(make: MakeSink) -> None:
    """Sinks of two sessions that are open at once keep their entries apart."""
    one, other = make(), make()

    for seq in range(1, 10):
        one.sink.write([_message(seq)])
        other.sink.write([_message(seq + 100)])
    one.sink.close()
    other.sink.close()

    _check_equal(one.read(), [_message(seq) for seq in range(1, 10)], "the first of two sinks")
    _check_equal(other.read(), [_message(seq) for seq in range(101, 110)], "the second of two")


def a_failure_is_reported_once_and_not_raised(make: MakeSink) -> None:
    """When nothing can be stored any more, `write` does not raise and one report is made."""
    made = make()
    if made.fail is None:
        return

    made.sink.write([_message(1)])
    made.fail()
    made.sink.write([_message(2)])
    made.sink.write([_message(3)])
    made.sink.close()

    if made.reports is not None and len(made.reports()) != 1:
        raise AssertionError(f"a failure was reported {len(made.reports())} times: expected once")


SINK_CONTRACTS: tuple[SinkContract, ...] = (
    entries_are_kept_in_order,
    a_batch_is_kept_whole,
    an_empty_batch_stores_nothing,
    every_kind_of_entry_is_kept,
    a_line_of_any_bytes_is_kept,
    the_batch_may_change_after_the_write,
    entries_are_left_as_they_are,
    details_that_cannot_be_stored_do_not_raise,
    closing_again_changes_nothing,
    a_write_after_the_close_stores_nothing,
    two_sinks_do_not_mix,
    a_failure_is_reported_once_and_not_raised,
)
"""Every contract of a sink."""


def _message(seq: int) -> Entry:
    line = b'{"type":"assistant","message":{"id":"m%d","content":[]}}' % seq
    return Entry(seq, float(seq), Kind.MESSAGE, line, ("u1",))


def _check_stored(made: SinkUnderTest, *batches: Sequence[Entry]) -> None:
    for batch in batches:
        made.sink.write(batch)
    made.sink.close()
    written = [entry for batch in batches for entry in batch]
    _check_equal(made.read(), written, "the stored entries")


def _check_equal(found: Iterable[Entry], wanted: Sequence[Entry], what: str) -> None:
    stored, given = [_fields(each) for each in found], [_fields(each) for each in wanted]
    if stored != given:
        raise AssertionError(f"{what}:\nstored: {stored!r}\n given: {given!r}")


def _fields(entry: Entry) -> tuple[object, ...]:
    return entry.seq, entry.at, entry.kind, entry.line, tuple(entry.turns), dict(entry.details)
