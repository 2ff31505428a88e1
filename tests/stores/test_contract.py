"""Every sink keeps the contract of the port."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from steersman.journal import Entry
from steersman.ports import Sink
from steersman.stores import JournalFile, read_journal
from steersman.testing.contracts.sinks import (
    SINK_CONTRACTS,
    MakeSink,
    SinkContract,
    SinkUnderTest,
    a_batch_is_kept_whole,
    a_failure_is_reported_once_and_not_raised,
    a_write_after_the_close_stores_nothing,
    entries_are_kept_in_order,
    the_batch_may_change_after_the_write,
)


class MemorySink:
    """Keeps entries in a list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._is_closed = False

    def write(self, entries: Sequence[Entry]) -> None:
        if not self._is_closed:
            self.entries += entries

    def close(self) -> None:
        self._is_closed = True


def in_memory(_folder: Path) -> MakeSink:
    def make() -> SinkUnderTest:
        sink = MemorySink()
        return SinkUnderTest(sink, lambda: sink.entries)

    return make


def in_a_file(folder: Path) -> MakeSink:
    numbers = itertools.count()

    def make() -> SinkUnderTest:
        path = folder / f"{next(numbers)}.jsonl"
        reports: list[str] = []
        sink = JournalFile(path, report=reports.append)
        return SinkUnderTest(
            sink, lambda: read_journal(path), lambda: take_away(path), lambda: reports
        )

    return make


def take_away(path: Path) -> None:
    """Put a file that is open for reading only where the sink has its own: its writes fail."""
    there = path.stat()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers, not paths
        try:
            found = os.fstat(int(name))
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) == (
            there.st_dev,
            there.st_ino,
        ):
            with Path(os.devnull).open("rb") as nothing:
                os.dup2(nothing.fileno(), int(name))


@pytest.mark.parametrize("place", [in_a_file, in_memory], ids=lambda place: place.__name__)
@pytest.mark.parametrize("contract", SINK_CONTRACTS, ids=lambda each: each.__name__)
def test_a_sink_keeps_its_contract(
    contract: SinkContract, place: Callable[[Path], MakeSink], tmp_path: Path
) -> None:
    contract(place(tmp_path))


# Sinks that break it are found


class KeepsTheBatch(MemorySink):
    def write(self, entries: Sequence[Entry]) -> None:
        self.batches = [*getattr(self, "batches", []), entries]

    def close(self) -> None:
        self.entries = [entry for batch in self.batches for entry in batch]


class Reversed(MemorySink):
    def write(self, entries: Sequence[Entry]) -> None:
        self.entries = [*entries, *self.entries]


class NeverClosed(MemorySink):
    def write(self, entries: Sequence[Entry]) -> None:
        self.entries += entries


class FirstOfEachBatch(MemorySink):
    def write(self, entries: Sequence[Entry]) -> None:
        self.entries += entries[:1]


@pytest.mark.parametrize(
    ("sink", "contract"),
    [
        (KeepsTheBatch, the_batch_may_change_after_the_write),
        (Reversed, entries_are_kept_in_order),
        (NeverClosed, a_write_after_the_close_stores_nothing),
        (FirstOfEachBatch, a_batch_is_kept_whole),
    ],
)
def test_a_sink_that_breaks_the_contract_is_found(
    sink: type[MemorySink], contract: SinkContract
) -> None:
    def make() -> SinkUnderTest:
        made = sink()
        return SinkUnderTest(made, lambda: made.entries)

    with pytest.raises(AssertionError):
        contract(make)


def test_a_failure_that_is_reported_for_every_write_is_found() -> None:
    class Talkative(MemorySink):
        def __init__(self) -> None:
            super().__init__()
            self.reports: list[str] = []

        def write(self, entries: Sequence[Entry]) -> None:
            self.reports.append(f"lost {len(entries)}")

    def make() -> SinkUnderTest:
        sink = Talkative()
        port: Sink = sink
        return SinkUnderTest(port, list, lambda: None, lambda: sink.reports)

    with pytest.raises(AssertionError, match="3 times"):
        a_failure_is_reported_once_and_not_raised(make)
