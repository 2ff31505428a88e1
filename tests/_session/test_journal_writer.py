"""The writer of a journal: what its sink gets, and whom it wakes."""

from __future__ import annotations

from collections.abc import Sequence

from steersman._session.journal_writer import JournalWriter
from steersman.journal import Entry, Kind


class Sink:
    def __init__(self) -> None:
        self.written: list[list[Kind]] = []
        self.closed = 0

    def write(self, entries: Sequence[Entry]) -> None:
        self.written.append([entry.kind for entry in entries])

    def close(self) -> None:
        self.closed += 1


def writer() -> tuple[JournalWriter, Sink]:
    made, sink = JournalWriter(1_000_000, lambda: 5.0), Sink()
    made.write_to(sink)
    return made, sink


def test_a_sink_gets_every_entry_once_and_in_order() -> None:
    made, sink = writer()

    made.append(1.0, Kind.SENT, b"{}")
    made.append_partials(1.0, [b"{}", b"{}"], ())
    assert sink.written == []
    made.wake()
    made.note(Kind.FAULT, where="x")
    made.wake()

    assert sink.written == [[Kind.SENT, Kind.PARTIAL, Kind.PARTIAL], [Kind.FAULT]]


def test_what_is_written_while_wakeups_are_held_reaches_the_sink_at_once() -> None:
    made, sink = writer()

    made.hold_wakeups()
    made.note(Kind.FAULT, where="x")
    made.wake()
    assert sink.written == []
    made.note(Kind.FAULT, where="y")
    made.release_wakeups()

    assert sink.written == [[Kind.FAULT, Kind.FAULT]]


def test_the_end_closes_the_sink_after_the_last_entry() -> None:
    made, sink = writer()
    made.append(1.0, Kind.SENT, b"{}")

    made.end()
    made.append(2.0, Kind.SENT, b"{}")
    made.append_partials(2.0, [b"{}"], ())
    made.wake()

    assert (sink.written, sink.closed) == ([[Kind.SENT]], 1)
    assert made.signal.has_ended
    assert made.journal.last_seq == 3


def test_a_fault_names_where_and_what() -> None:
    made, _ = writer()

    made.fault("hook", ValueError("secret"))
    made.fault("journal file", "no space")

    found = [entry.details for entry in made.journal.after(0, most=10)]
    assert found == [
        {"where": "hook", "error": "ValueError"},
        {"where": "journal file", "error": "no space"},
    ]
