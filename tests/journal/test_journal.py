from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from steersman.journal import Entry, Journal, Kind
from steersman.journal.journal import ENTRY_WEIGHT, WARM
from steersman.messages import UnknownMessage


def written(journal: Journal, *sizes: int) -> list[Entry]:
    return [journal.append(0.0, Kind.MESSAGE, b"x" * size) for size in sizes]


def test_entries_are_numbered_from_one() -> None:
    journal = Journal()
    assert journal.last_seq == 0

    entries = written(journal, 1, 2, 3)

    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert journal.last_seq == 3


def test_an_entry_keeps_what_it_was_written_with() -> None:
    entry = Journal().append(12.5, Kind.FAULT, b"line", ("a", "b"), {"where": "hook", "count": 2})

    assert (entry.at, entry.kind, entry.line, entry.turns) == (
        12.5,
        Kind.FAULT,
        b"line",
        ("a", "b"),
    )
    assert entry.details == {"where": "hook", "count": 2}


def test_reading_goes_on_behind_a_number_and_takes_no_more_than_it_asks_for() -> None:
    journal = Journal()
    entries = written(journal, *[1] * 10)

    assert journal.after(0) == entries
    assert journal.after(3, most=2) == entries[3:5]
    assert journal.after(10) == []
    assert journal.after(99) == []


def test_the_oldest_entries_are_forgotten_when_memory_is_full() -> None:
    journal = Journal(memory=3 * (100 + ENTRY_WEIGHT))
    entries = written(journal, *[100] * 5)

    assert journal.after(0) == entries[2:]
    assert [journal.lost_after(seq) for seq in range(6)] == [2, 1, 0, 0, 0, 0]
    assert journal.last_seq == 5


def test_the_newest_entry_is_kept_however_heavy_it_is() -> None:
    journal = Journal(memory=1)

    _first, second = written(journal, 10_000, 20_000)

    assert journal.after(0) == [second]
    assert journal.lost_after(0) == 1


def test_entries_without_a_line_are_bounded_as_well() -> None:
    journal = Journal(memory=100 * ENTRY_WEIGHT)

    written(journal, *[0] * 10_000)

    assert len(journal.after(0, most=10_000)) == 100
    assert journal.lost_after(0) == 9_900


def decoded(journal: Journal, *sizes: int) -> list[Entry]:
    entries: list[Entry] = []
    for size in sizes:
        entries += written(journal, size)
        entries[-1].decoded = UnknownMessage()
    return entries


@given(sizes=st.lists(st.integers(0, WARM), max_size=30), memory=st.integers(1, 4 * WARM))
def test_what_newer_entries_were_decoded_to_is_kept_and_of_older_ones_not(
    sizes: list[int], memory: int
) -> None:
    journal = Journal(memory)

    entries = decoded(journal, *sizes)

    still_there = set(map(id, journal.after(0, most=1000)))
    kept = [entry for entry in entries if id(entry) in still_there]
    warm = [entry for entry in kept if entry.decoded is not None]
    assert warm == kept[len(kept) - len(warm) :]
    # The line that is one too many goes with those before it, and so is over the limit itself.
    assert sum(map(_weight, warm)) <= 2 * (WARM + ENTRY_WEIGHT + max(sizes, default=0))
    newest = [entry for entry in kept if _weight_since(entry, kept) <= WARM]
    assert all(entry.decoded is not None for entry in newest)


def _weight(entry: Entry) -> int:
    return len(entry.line) + ENTRY_WEIGHT


def _weight_since(entry: Entry, entries: list[Entry]) -> int:
    """How much came with this entry and behind it."""
    return sum(_weight(each) for each in entries if each.seq >= entry.seq)


def test_a_large_message_stays_decoded_only_until_the_next_one() -> None:
    first, second = decoded(Journal(), 2 * WARM, 2 * WARM)

    assert first.decoded is None
    assert second.decoded is not None


@given(sizes=st.lists(st.integers(0, 2000), max_size=80), memory=st.integers(1, 20_000))
def test_memory_is_bounded_but_for_the_newest_entry(sizes: list[int], memory: int) -> None:
    journal = Journal(memory)

    written(journal, *sizes)

    kept = journal.after(0, most=1000)
    weight = sum(len(entry.line) + ENTRY_WEIGHT for entry in kept)
    assert weight <= memory or len(kept) <= 1
    assert [entry.seq for entry in kept] == list(
        range(journal.lost_after(0) + 1, journal.last_seq + 1)
    )


class JournalMachine(RuleBasedStateMachine):
    """Readers at their own pace see every entry, or learn how many they lost."""

    @initialize(memory=st.integers(1, 4000))
    def begin(self, memory: int) -> None:
        self.journal = Journal(memory)
        self.all: list[Entry] = []
        self.cursors = [0, 0, 0]

    @rule(size=st.integers(0, 600))
    def write(self, size: int) -> None:
        self.all += written(self.journal, size)

    @rule(reader=st.integers(0, 2), most=st.integers(1, 5))
    def read(self, reader: int, most: int) -> None:
        cursor = self.cursors[reader]
        lost = self.journal.lost_after(cursor)

        seen = self.journal.after(cursor, most)

        assert seen == self.all[cursor + lost : cursor + lost + most]
        self.cursors[reader] = seen[-1].seq if seen else cursor

    @invariant()
    def numbers_have_no_holes(self) -> None:
        if hasattr(self, "journal"):
            assert self.journal.last_seq == len(self.all)
            assert self.journal.lost_after(self.journal.last_seq) == 0


TestJournal = JournalMachine.TestCase


def test_the_newest_entry_of_the_conversation_and_the_newest_end_are_known() -> None:
    journal = Journal()
    seen = []
    for kind in (Kind.SENT, Kind.MESSAGE, Kind.SETTLED, Kind.RESTARTED, Kind.FAULT):
        journal.append(0.0, kind)
        seen.append((journal.last_seq, journal.last_spoken, journal.last_settled))
    journal.append_partials(0.0, [b"a", b"b"], ())

    assert seen == [(1, 0, 0), (2, 2, 0), (3, 3, 3), (4, 4, 3), (5, 4, 3)]
    assert (journal.last_seq, journal.last_spoken, journal.last_settled) == (7, 7, 3)


def test_the_times_of_entries_never_go_back() -> None:
    journal = Journal()
    for at in (5.0, 4.0, 6.0):
        journal.append(at, Kind.MESSAGE)
    journal.append_partials(3.0, [b"{}", b"{}"], ())
    journal.append_partials(7.0, [b"{}"], ())
    journal.append(6.5, Kind.SETTLED)

    assert [entry.at for entry in journal.after(0)] == [5.0, 5.0, 6.0, 6.0, 6.0, 7.0, 7.0]
