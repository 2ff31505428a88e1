"""One owner per conversation, in this process and across processes."""

from __future__ import annotations

import gc
import logging
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from steersman._process import identity_of
from steersman.errors import SessionInUse
from steersman.stores.conversation_lock import LockDirectory, claim, lock_directory

pytestmark = pytest.mark.process

ID = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"

HOLDER = """\
import subprocess, sys
from steersman.stores.conversation_lock import LockDirectory, claim
lock = claim(LockDirectory(sys.argv[1]), sys.argv[2])
child = subprocess.Popen(["sleep", "600"]) if "cli" in sys.argv else None
lock.runs(child.pid if child else None)
"ends" in sys.argv and lock.ends()
print(child.pid if child else 0, flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(
    config: Path, *how: str, id_: str = ID
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that has the conversation, and the pid of its CLI."""
    command = (sys.executable, "-c", HOLDER, str(config), id_, *how)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        cli = int(process.stdout.readline())
        try:
            yield process, cli
        finally:
            process.kill()
            if cli:
                with suppress(ProcessLookupError):
                    os.kill(cli, signal.SIGKILL)


def locks_in(config: Path) -> list[str]:
    return sorted(path.name for path in (config / "steersman").iterdir())


def test_the_second_opener_in_this_process_learns_who_has_it_and_since_when(tmp_path: Path) -> None:
    before = time.time()
    lock = claim(LockDirectory(str(tmp_path)), ID)

    with pytest.raises(SessionInUse, match=f"this process .{os.getpid()}. has it open since") as no:
        claim(LockDirectory(str(tmp_path)), ID)

    assert no.value.pid == os.getpid()
    assert before <= (no.value.since or 0) <= time.time()
    assert "wait=seconds" in no.value.hint
    lock.release()


def test_the_second_opener_in_another_process_learns_who_has_it_and_since_when(
    tmp_path: Path,
) -> None:
    with another_process(tmp_path) as (process, _cli), pytest.raises(SessionInUse) as no:
        claim(LockDirectory(str(tmp_path)), ID)

    assert f"the process {process.pid} has it open since 20" in str(no.value)
    assert (no.value.pid, no.value.is_ending) == (process.pid, False)
    assert abs((no.value.since or 0) - time.time()) < 60


def test_an_owner_that_is_closing_still_has_it_and_says_so(tmp_path: Path) -> None:
    with another_process(tmp_path, "ends"), pytest.raises(SessionInUse) as elsewhere:
        claim(LockDirectory(str(tmp_path)), ID)
    lock = claim(LockDirectory(str(tmp_path)), ID)
    lock.ends()
    with pytest.raises(SessionInUse) as here:
        claim(LockDirectory(str(tmp_path)), ID)
    lock.release()

    assert (elsewhere.value.is_ending, here.value.is_ending) == (True, True)


def test_a_killed_owner_leaves_the_conversation_free(tmp_path: Path) -> None:
    with another_process(tmp_path) as (process, _cli):
        process.kill()
        process.wait()

        lock = claim(LockDirectory(str(tmp_path)), ID)

    lock.release()
    assert locks_in(tmp_path) == []


def test_the_cli_of_a_killed_owner_has_the_conversation_until_it_has_ended(tmp_path: Path) -> None:
    place = LockDirectory(str(tmp_path))
    with another_process(tmp_path, "cli") as (process, cli):
        process.kill()
        process.wait()

        with pytest.raises(
            SessionInUse, match=rf"host program that has ended .process {cli}"
        ) as no:
            claim(place, ID)
        os.kill(cli, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while True:
            try:
                lock = claim(place, ID)
                break
            except SessionInUse:
                assert time.monotonic() < deadline

    assert (no.value.pid, no.value.is_ending) == (cli, True)
    lock.release()


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    place = LockDirectory(str(tmp_path))
    lock = claim(place, ID)
    ready, child_ready = os.pipe()
    wait, go = os.pipe()
    child = os.fork()
    if not child:
        # A child that lives on, and forgets to close anything.
        lock.release()
        os.write(child_ready, b"1" if not lock.is_held else b"0")
        os.read(wait, 1)
        os._exit(0)
    assert os.read(ready, 1) == b"1"

    with pytest.raises(SessionInUse):
        claim(place, ID)
    assert is_refused_elsewhere(tmp_path)
    lock.release()
    again = claim(place, ID)

    again.release()
    os.write(go, b"1")
    assert os.waitpid(child, 0)[1] == 0
    for number in (ready, child_ready, wait, go):
        os.close(number)


def is_refused_elsewhere(config: Path) -> bool:
    command = (sys.executable, "-c", HOLDER, str(config), ID)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )
    return b"SessionInUse" in done.stderr


def test_a_program_that_is_started_does_not_inherit_the_lock(tmp_path: Path) -> None:
    place = LockDirectory(str(tmp_path))
    lock = claim(place, ID)
    with subprocess.Popen(("sleep", "600"), close_fds=False) as child:
        lock.release()

        again = claim(place, ID)

        assert (again.is_held, child.poll()) == (True, None)
        again.release()
        child.kill()


def test_only_the_owner_can_read_the_file_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    config = tmp_path / "missing" / "config"
    before = os.umask(0)
    try:
        lock = claim(LockDirectory(str(config)), ID)
    finally:
        os.umask(before)

    assert locks_in(config) == [f"{ID}.lock"]
    file = config / "steersman" / f"{ID}.lock"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    lock.release()
    lock.release()
    assert locks_in(config) == []


def test_a_lock_that_is_forgotten_is_free(tmp_path: Path) -> None:
    place = LockDirectory(str(tmp_path))
    lock: object = claim(place, ID)

    del lock
    gc.collect()

    again = claim(place, ID)
    assert again.is_held
    again.release()
    assert locks_in(tmp_path) == []


def test_where_no_file_can_be_locked_the_lock_holds_in_this_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = LockDirectory(str(tmp_path / "file"))
    (tmp_path / "file").write_text("no directory")

    with caplog.at_level(logging.WARNING, "steersman.session"):
        lock = claim(place, ID)
        with pytest.raises(SessionInUse):
            claim(place, ID)
        lock.release()
        claim(place, ID).release()

    (warning,) = caplog.messages
    assert "within this process only" in warning
    assert warning.endswith(f"{tmp_path}/file/steersman: Not a directory")


def test_a_link_in_the_place_of_the_file_or_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "steersman").mkdir()
    (tmp_path / "steersman" / f"{ID}.lock").symlink_to(tmp_path / "target")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "steersman").symlink_to(tmp_path)

    for config in (tmp_path, tmp_path / "config"):
        claim(LockDirectory(str(config)), ID).release()

    assert (tmp_path / "target").read_text() == "precious"
    assert not (tmp_path / f"{ID}.lock").exists()


def test_an_id_that_is_no_file_name_has_a_lock_too(tmp_path: Path) -> None:
    place = LockDirectory(str(tmp_path / "config"))
    lock = claim(place, "../../else where")

    with pytest.raises(SessionInUse):
        claim(place, "../../else where")

    assert len(locks_in(tmp_path / "config")) == 1
    lock.release()
    assert list(tmp_path.iterdir()) == [tmp_path / "config"]


def test_a_note_that_was_cut_off_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "steersman").mkdir()
    (tmp_path / "steersman" / f"{ID}.lock").write_text('{"pid": 12')

    claim(LockDirectory(str(tmp_path)), ID).release()

    assert locks_in(tmp_path) == []


def test_of_many_threads_one_has_the_conversation_at_a_time(tmp_path: Path) -> None:
    place = LockDirectory(str(tmp_path))
    inside: list[int] = []
    most: list[int] = []
    done: list[int] = []

    def work(number: int) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                lock = claim(place, ID)
            except SessionInUse:
                continue
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)
            lock.release()
            done.append(number)
            return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert (sorted(done), max(most)) == (list(range(4)), 1)


def test_a_cli_elsewhere_is_locked_in_this_process_by_its_place(tmp_path: Path) -> None:
    one = claim(None, ID, key=("ssh", "one"))
    two = claim(None, ID, key=("ssh", "two"))

    with pytest.raises(SessionInUse):
        claim(None, ID, key=("ssh", "one"))

    one.release()
    two.release()
    claim(None, ID, key=("ssh", "one")).release()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}, "/c"),
        ({"HOME": "/h"}, "/h/.claude"),
        ({}, None),
        ({"HOME": ""}, None),
    ],
)
def test_the_files_are_in_the_clis_configuration_directory(
    env: dict[str, str], expected: str | None
) -> None:
    found = lock_directory(env)

    assert (found and found.config) == expected


def test_what_killed_processes_have_left_is_removed_by_the_next_process(tmp_path: Path) -> None:
    folder = tmp_path / "steersman"
    with another_process(tmp_path) as (holder, _), another_process(tmp_path, "cli", id_=OTHER):
        for name in ("left", "right"):
            (folder / f"{name}.lock").write_text('{"pid": 1, "host": "x"}')
        (folder / "notes.txt").write_text("not ours")
        (folder / "elsewhere.lock").symlink_to(tmp_path)
        with another_process(tmp_path, id_="first"):
            owned = [f"{each}.lock" for each in (ID, OTHER, "first")]
            assert locks_in(tmp_path) == sorted([*owned, "elsewhere.lock", "notes.txt"])

        holder.kill()
        holder.wait()
        with another_process(tmp_path, id_="second"):
            assert f"{ID}.lock" not in locks_in(tmp_path)


def test_the_file_of_a_killed_owner_stays_while_its_cli_runs(tmp_path: Path) -> None:
    with another_process(tmp_path, "cli") as (holder, cli):
        holder.kill()
        holder.wait()
        with another_process(tmp_path, id_="first"):
            assert f"{ID}.lock" in locks_in(tmp_path)
        os.kill(cli, signal.SIGKILL)
        while identity_of(cli) is not None:
            time.sleep(0.01)
        with another_process(tmp_path, id_="second"):
            assert f"{ID}.lock" not in locks_in(tmp_path)


SWEEPER = """\
import os, sys
from steersman.stores import conversation_lock as locks
from steersman.stores.conversation_lock import LockDirectory, claim
number = int(sys.argv[2])
for turn in range(300):
    locks._swept.clear()
    claim(LockDirectory(sys.argv[1]), f"own-{number}").release()
print("done")
"""


def test_an_opener_beside_processes_that_sweep_always_gets_a_free_conversation(
    tmp_path: Path,
) -> None:
    """Each round leaves the file of a killed owner, which is opened while others remove it."""
    place = LockDirectory(str(tmp_path))
    command = (sys.executable, "-c", SWEEPER, str(tmp_path))
    sweepers = [subprocess.Popen((*command, str(n)), stdout=subprocess.PIPE) for n in range(2)]
    path = tmp_path / "steersman" / f"{ID}.lock"
    try:
        rounds = 0
        while any(each.poll() is None for each in sweepers):
            lock = claim(place, ID)
            assert lock.is_held
            assert path.exists()
            lock.release()
            path.write_text('{"pid": 1, "host": "x"}')
            rounds += 1
    finally:
        for each in sweepers:
            each.kill()
    said = [each.communicate()[0] for each in sweepers]

    assert said == [b"done\n"] * 2
    assert rounds > 0
