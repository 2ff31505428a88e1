"""A journal on disk is whole up to the last line, whatever happens to its writer."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import Header, Record, line_of, read_tracks
from steersman.journal.redaction import MARK, Redactor
from steersman.journal.replaying import replay
from steersman.stores import JournalFile, read_journal
from tests.full_disk import without_room
from tests.journal.recordings import hold

Seen = tuple[int, float, Kind, bytes, tuple[str, ...], dict[str, object]]


def seen(entry: Entry) -> Seen:
    return entry.seq, entry.at, entry.kind, entry.line, entry.turns, dict(entry.details)


def said(seq: int, text: str = "hello") -> Entry:
    return Entry(seq, float(seq), Kind.MESSAGE, b'{"type":"x","text":"%s"}' % text.encode(), ("u",))


def kept(path: Path, *entries: Entry) -> None:
    sink = JournalFile(path)
    sink.write(entries)
    sink.close()


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    entries = [
        said(1),
        Entry(2, 2.5, Kind.NOISE, b"\xff not utf-8"),
        Entry(3, 3.0, Kind.PHASE, details={"before": "idle", "after": "running"}),
    ]

    sink = JournalFile(path)
    for entry in entries:
        sink.write([entry])

    assert [seen(each) for each in read_journal(path)] == [seen(each) for each in entries]
    sink.close()


@given(
    batches=st.lists(
        st.lists(
            st.builds(
                Entry,
                st.integers(1, 1000),
                st.floats(0, 1e10),
                st.sampled_from([kind for kind in Kind if kind is not Kind.RESTARTED]),
                st.binary(max_size=30) | st.sampled_from([b'{"a": 1}', b'{"a":"\\ud800"}', b"[]"]),
                st.lists(st.text(max_size=3), max_size=2).map(tuple),
                st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=4)),
            ),
            max_size=4,
        ),
        max_size=4,
    )
)
def test_any_entries_in_any_batches_come_back(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Entry]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "journal.jsonl"
    sink = JournalFile(path)

    for batch in batches:
        sink.write(batch)
    sink.close()

    written = [entry for batch in batches for entry in batch]
    found = list(read_journal(path)) if written else []
    assert [seen(each) for each in found] == [seen(each) for each in written]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    old.touch(0o644)

    for path in (new, old):
        kept(path, said(1))

        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_session_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    JournalFile(path).close()

    assert path.read_bytes() == b""


COUNTER = """
import sys
from pathlib import Path
from steersman.journal import Entry, Kind
from steersman.stores import JournalFile

def writes():
    return int(Path("/proc/self/io").read_text().partition("syscw: ")[2].partition("\\n")[0])

sink = JournalFile(sys.argv[1])
before = writes()
sink.write([Entry(n, 1.0, Kind.NOISE, b"x") for n in range(50)])
sink.write([])
print(writes() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel does not count writes")
def test_a_batch_is_one_write(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    told = subprocess.check_output([sys.executable, "-c", COUNTER, str(path)], timeout=30)

    assert int(told) == 1
    assert len(list(read_journal(path))) == 50


def test_opened_again_it_goes_on_with_a_track_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    kept(path, said(1), said(2))

    kept(path, said(1, "again"))

    first, second = read_tracks(path.read_bytes())
    assert [first.header.track, second.header.track] == [0, 1]
    assert [len(first.records), len(second.records)] == [2, 1]


def test_a_revival_begins_a_track(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    kept(path, said(1), Entry(2, 2.0, Kind.RESTARTED, details={"attempt": 1}), said(3))

    tracks = read_tracks(path.read_bytes())
    assert [[record.seq for record in track.records] for track in tracks] == [[1], [2, 3]]
    assert [track.header.track for track in tracks] == [0, 1]


@pytest.mark.parametrize("cut", [2, 5, 40])
def test_a_torn_line_stays_and_hides_nothing(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal.jsonl"
    kept(path, said(1), said(2))
    os.truncate(path, path.stat().st_size - cut)
    torn = path.read_bytes()

    kept(path, said(3))

    assert path.read_bytes().startswith(torn)
    found = list(read_journal(path))
    assert [each.seq for each in found if not each.details.get("torn")] == [1, 3]
    assert [each.line for each in found if each.details.get("torn")] == [torn.split(b"\n")[-1]]


def test_a_header_that_was_cut_off_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    kept(path, said(1))
    with path.open("ab") as file:
        file.write(line_of(Header(track=1))[:30])

    kept(path, said(2))

    assert [each.seq for each in read_journal(path) if not each.details.get("torn")] == [1, 2]


@pytest.mark.parametrize("content", [b"dear diary\n", b'{"a": 1}\n', b'{"journal":99}\n'])
def test_a_file_that_is_no_journal_of_ours_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(content)

    with pytest.raises(UsageError, match="journal"):
        JournalFile(path)
    with pytest.raises(UsageError, match="journal"):
        read_journal(path)

    assert path.read_bytes() == content


def test_where_no_file_can_be_it_says_so_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "journal.jsonl", tmp_path):
        with pytest.raises(UsageError, match="can be written"):
            JournalFile(path)
    with pytest.raises(UsageError, match="can be read"):
        read_journal(tmp_path / "missing")


def test_two_sessions_cannot_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = JournalFile(path)

    with pytest.raises(UsageError, match="not in use"):
        JournalFile(path)

    first.close()
    JournalFile(path).close()


# What must not be written


def test_secrets_are_taken_out_of_lines_and_details(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = JournalFile(path, redact=Redactor(["hunter2-secret"]).line)

    sink.write(
        [
            said(1, "it is hunter2-secret"),
            Entry(2, 2.0, Kind.FAULT, details={"e": "hunter2-secret"}),
        ]
    )
    sink.close()

    assert b"hunter2" not in path.read_bytes()
    assert path.read_bytes().count(MARK.encode()) == 2


@pytest.mark.parametrize("kind", [Kind.MESSAGE, Kind.PARTIAL], ids=lambda kind: kind.value)
def test_a_rule_that_fails_writes_nothing_in_clear(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "journal.jsonl"

    def broken(_line: bytes) -> bytes:
        raise RuntimeError

    sink = JournalFile(path, redact=broken)
    sink.write([Entry(1, 1.0, kind, b'{"a":"secret"}')])
    sink.close()

    (entry,) = read_journal(path)
    assert (entry.line, entry.details) == (MARK.encode(), {"unwritable": "RuntimeError"})


def test_a_partial_message_without_a_line_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    kept(path, Entry(1, 1.0, Kind.PARTIAL), said(2))

    assert [(each.seq, each.kind) for each in read_journal(path)] == [
        (1, Kind.PARTIAL),
        (2, Kind.MESSAGE),
    ]


def test_details_that_no_json_can_say_do_not_stop_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    kept(path, Entry(1, 1.0, Kind.DECIDED, details={"x": object()}), said(2))

    assert [each.seq for each in read_journal(path)] == [1, 2]


# What may go wrong


def test_numbers_of_entries_that_could_not_be_written_are_not_given_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = JournalFile(path)
    sink.write([said(1), said(2)])
    with without_room(path.stat().st_size):
        sink.write([said(3)])
        sink.write([said(4), said(5)])
    sink.close()

    again = JournalFile(path)
    assert again.last_seq == 5
    again.write([said(6)])
    again.close()

    assert [each.seq for each in read_journal(path)] == [1, 2, 6]
    assert [each.seq for each in read_journal(path, after=4)] == [6]


def test_a_full_disk_is_reported_once_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    reports: list[str] = []
    sink = JournalFile(path, report=reports.append)
    sink.write([said(1), said(2)])

    with without_room(path.stat().st_size + 100):
        sink.write([said(n) for n in range(3, 20)])
        sink.write([said(20)])
    sink.write([said(21)])
    sink.close()

    assert len(reports) == 1
    assert os.strerror(errno.EFBIG) in reports[0]
    assert sink.failure == reports[0]
    found = [each.seq for each in read_journal(path)]
    assert found == list(range(1, len(found) + 1))
    assert 2 <= len(found) < 19
    assert path.read_bytes().endswith(b"\n")


def test_a_report_that_raises_hurts_nobody(tmp_path: Path) -> None:
    def broken(_report: str) -> None:
        raise RuntimeError

    sink = JournalFile(tmp_path / "journal.jsonl", report=broken)

    with without_room(1):
        sink.write([said(1)])

    assert sink.failure


WRITER = """
import sys
from steersman.journal import Entry, Kind
from steersman.stores import JournalFile
sink = JournalFile(sys.argv[1])
seq = 0
while True:
    batch = [Entry(seq + n, 1.0, Kind.MESSAGE, b'{"text":"%s"}' % (b"x" * 2000)) for n in (1, 2, 3)]
    sink.write(batch)
    seq += 3
    print(seq, flush=True)
"""


@pytest.mark.parametrize("after", [1, 20, 300])
def test_a_writer_that_is_killed_loses_nothing_that_it_had_written(
    tmp_path: Path, after: int
) -> None:
    path = tmp_path / "journal.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        told = 0
        for _ in range(after):
            told = int(writer.stdout.readline())
        writer.kill()
        left = [int(line) for line in writer.stdout.read().split(b"\n")[:-1]]

    found = list(read_journal(path))

    torn = [each for each in found if each.details.get("torn")]
    whole = [each.seq for each in found if not each.details.get("torn")]
    assert len(torn) <= 1
    assert whole == list(range(1, len(whole) + 1))
    assert len(whole) >= max([told, *left])
    JournalFile(path).close()


HUNDRED_THOUSAND = """
import resource, sys
from steersman.journal import Journal, Kind
from steersman.stores import JournalFile, read_journal

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

journal, sink = Journal(memory=200_000), JournalFile(sys.argv[1])
line = b'{"type":"stream_event","text":"%s"}' % (b"x" * 200)
for n in range(100_000):
    sink.write([journal.append(float(n), Kind.PARTIAL, line)])
    if n == 5_000:
        early = peak()
sink.close()
print(sum(1 for _ in read_journal(sys.argv[1])), peak() - early)
"""


@pytest.mark.soak_only
def test_a_hundred_thousand_entries_take_no_more_memory_than_a_few(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HUNDRED_THOUSAND, str(tmp_path / "journal.jsonl")]

    count, grown = map(int, subprocess.check_output(command, timeout=60).split())

    assert count == 100_000
    assert grown < 4_000, "KiB, of a file of 28 MB"


async def test_a_session_read_from_its_file_is_the_session(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    held = await hold("subagent_foreground")

    kept(path, *held.entries)

    found = replay(read_journal(path))
    live = replay(held.entries)
    assert (found.turns, found.states, found.snapshot) == (live.turns, live.states, live.snapshot)
    assert [Record.of(each) for each in found.entries] == [Record.of(each) for each in held.entries]


def test_an_existing_journal_that_others_can_read_is_narrowed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = JournalFile(path)
    first.write([Entry(1, 1.0, Kind.MESSAGE, b'{"type":"x"}')])
    first.close()
    path.chmod(0o666)

    JournalFile(path).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_no_journal_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("not a journal\n")
    path.chmod(0o644)

    with pytest.raises(UsageError):
        JournalFile(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_link_to_a_file_that_others_can_read_is_refused_and_its_mode_is_kept(
    tmp_path: Path,
) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.touch()
    target.chmod(0o666)
    link.symlink_to(target)

    with pytest.raises(UsageError, match="only you can read"):
        JournalFile(link)

    assert stat.S_IMODE(target.stat().st_mode) == 0o666


def test_a_journal_is_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(UsageError, match="a regular file"):
            JournalFile(path)


def test_a_device_and_the_target_of_a_link_keep_their_modes(tmp_path: Path) -> None:
    device, link = Path("/dev/null"), tmp_path / "link"
    link.symlink_to(device)
    before = device.stat().st_mode

    for path in (device, link):
        with pytest.raises(UsageError, match="a regular file"):
            JournalFile(path)

    assert device.stat().st_mode == before


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_is_reported_once_and_not_written_again(
    tmp_path: Path, *, replaced: bool
) -> None:
    path = tmp_path / "journal.jsonl"
    reports: list[str] = []
    sink = JournalFile(path, report=reports.append)
    sink.write([said(1)])

    path.unlink()
    if replaced:
        path.touch()
    sink.write([said(2)])
    sink.write([said(3)])
    sink.close()

    assert [report.rpartition(": ")[2] for report in reports] == ["the file was removed"]
    assert sink.failure == reports[0]
    assert not replaced or path.read_bytes() == b""


def test_a_file_that_is_removed_after_the_last_entry_is_reported_at_the_close(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.jsonl"
    reports: list[str] = []
    sink = JournalFile(path, report=reports.append)
    sink.write([said(1)])

    path.unlink()
    sink.close()
    sink.close()

    assert len(reports) == 1


def forked_copy() -> tuple[int, int]:
    """Fork a copy of this process that does nothing until the pipe is closed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    return pid, writer


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*")
def test_a_forked_worker_does_not_keep_the_file_locked(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = JournalFile(path)
    first.write([said(1)])
    pid, writer = forked_copy()
    try:
        first.write([said(2)])
        with pytest.raises(UsageError, match="not in use"):
            JournalFile(path)
        first.close()

        kept(path, said(3))
    finally:
        os.close(writer)
        os.waitpid(pid, 0)

    assert [each.seq for each in read_journal(path)] == [1, 2, 3]


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*")
def test_a_forked_worker_writes_nothing_and_does_not_unlock_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    sink = JournalFile(path)
    pid = os.fork()
    if not pid:
        sink.write([said(7)])
        sink.close()
        os._exit(0 if "forked copy" in sink.failure else 1)

    assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(UsageError, match="not in use"):
        JournalFile(path)
    sink.close()
    assert path.read_bytes() == b""


WORKER = """
import os, sys, time
from steersman.stores import JournalFile
sink = JournalFile(sys.argv[1])
if not os.fork():
    print("forked", flush=True)
    time.sleep(60)
time.sleep(60)
"""


@pytest.mark.process
def test_a_worker_of_a_killed_host_does_not_keep_the_file_locked(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path)], stdout=subprocess.PIPE, start_new_session=True
    ) as host:
        assert host.stdout is not None
        host.stdout.readline()
        host.kill()
        host.wait(10)
        try:
            kept(path, said(1))
        finally:
            os.killpg(host.pid, signal.SIGKILL)
