"""The guard as a program: what it does when its host, its commands or itself come to an end.

Each test takes the part of the host, and breaks one thing while all others hold.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steersman.transports import guard, kernel
from steersman.transports.guards import BOOT

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs parent-death signals")

TREE = """
import os, sys, time
place, way = sys.argv[1:]
def note(name):
    with open(f"{place}/{name}.new", "w") as file: file.write(str(os.getpid()))
    os.rename(f"{place}/{name}.new", f"{place}/{name}")
note("cli")
if not os.fork():
    if way == "session": os.setsid()
    note("tool")
    time.sleep(60)
    os._exit(0)
while not os.path.exists(f"{place}/tool"): time.sleep(0.002)
if way != "exits": time.sleep(60)
"""
"""A CLI with a tool: in a session of its own, or in the CLI's group. With `exits` the CLI ends."""


def is_alive(pid: int) -> bool:
    row = kernel.row_of(pid)
    return row is not None and row[3] not in "ZX"


def within(seconds: float, is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.002)
    return is_true()


@dataclass
class Guarded:
    """A guard that this test has started, and what it started itself."""

    pid: int
    """The guard's first process, which is a child of this one."""
    command: int
    reports: int
    place: Path
    text: str = ""

    def noted(self, name: str) -> int:
        """Wait until `cli` or `tool` runs; return its pid."""
        assert within(10, (self.place / name).exists)
        return int((self.place / name).read_text())

    def report(self, beginning: str) -> str:
        """Wait for a report that begins so, and return the rest of it."""
        deadline = time.monotonic() + 10
        while True:
            for line in self.text.splitlines():
                if line.startswith(beginning):
                    return line.removeprefix(beginning).strip()
            assert select.select([self.reports], [], [], deadline - time.monotonic())[0], self.text
            data = os.read(self.reports, 4096)
            assert data, f"the guard ended without {beginning!r}: {self.text!r}"
            self.text += data.decode()

    def rest(self) -> str:
        """Return all reports, after waiting for the end of the last process that writes them."""
        deadline = time.monotonic() + 10
        while select.select([self.reports], [], [], deadline - time.monotonic())[0]:
            data = os.read(self.reports, 4096)
            if not data:
                return self.text
            self.text += data.decode()
        raise AssertionError(self.text)

    def have_ended(self, *pids: int) -> bool:
        return within(10, lambda: not any(map(is_alive, pids)))


HOST = """
import os, sys, time
argv = [str(os.getpid()) if each == "HOST" else each for each in sys.argv[2:]]
guard = os.posix_spawn(argv[0], argv, os.environ)
with open(sys.argv[1] + ".new", "w") as file: file.write(str(guard))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
"""
"""A host that holds no pipe to its guard: those stay with the test."""


@contextlib.contextmanager
def guarded(
    place: Path,
    *argv: str,
    host: str = "",
    before: str = "",
    way: str = "session",
    user: str = "",
) -> Iterator[Guarded]:
    """Run a guard whose host is this process, the process `host`, or with `other` another one.

    `before` is run first in the guard's interpreter, to take something away from it.
    """
    control, command = os.pipe()
    reports, status = os.pipe()
    assert min(control, command, reports, status) > guard.STATUS
    program = argv or (sys.executable, "-I", "-S", "-c", TREE, str(place), way)
    named = "HOST" if host == "other" else host or str(os.getpid())
    line = [
        *(sys.executable, "-I", "-S", "-B", "-c", before + BOOT, kernel.__file__, guard.__file__),
        *(named, str(place / "private"), "", user, *program),
    ]
    if host == "other":
        line = [sys.executable, "-I", "-S", "-c", HOST, str(place / "outer"), *line]
    pid = os.posix_spawn(
        line[0],
        line,
        {guard.ENV_PREFIX + "PATH": os.environ["PATH"]},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, control, guard.CONTROL),
            (os.POSIX_SPAWN_DUP2, status, guard.STATUS),
        ],
    )
    os.close(control)
    os.close(status)
    try:
        yield Guarded(pid, command, reports, place)
    finally:
        for each in (command, reports):
            with contextlib.suppress(OSError):
                os.close(each)
        kernel.kill_below(pid)
        kernel.send_signal(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def inner_of(outer: int) -> int:
    """Return the guard's second process."""
    (inner,) = [row[0] for row in kernel.below(outer) if row[1] == outer]
    return inner


def test_a_directory_is_removed_with_all_it_holds(tmp_path: Path) -> None:
    place = tmp_path / "private"
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "file").write_text("x")
    (place / "link").symlink_to(tmp_path)

    guard.remove_directory(str(place))

    assert not place.exists()
    assert tmp_path.exists()


def test_a_guard_whose_host_is_not_its_parent_starts_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with guarded(tmp_path, "/bin/touch", str(mark), host="1") as it:
        os.write(it.command, b"g")

        assert it.rest().splitlines()[-1] == "exited -9"

    assert not mark.exists()


def test_the_end_of_the_commands_ends_the_tree_while_the_host_lives(tmp_path: Path) -> None:
    with guarded(tmp_path) as it:
        os.write(it.command, b"g")
        pids = it.noted("cli"), it.noted("tool")
        assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700

        os.close(it.command)

        assert it.rest().endswith("exited -9\n")
        assert it.have_ended(*pids)
        assert not (tmp_path / "private").exists()


@LINUX_ONLY
@pytest.mark.parametrize("also", ["", "outer", "inner"])
def test_the_death_of_the_host_ends_the_tree_while_the_commands_stay_open(
    tmp_path: Path, also: str
) -> None:
    with guarded(tmp_path, host="other") as it:
        os.write(it.command, b"g")
        pids = it.noted("cli"), it.noted("tool")
        outer = it.noted("outer")
        inner = inner_of(outer)
        victims = [it.pid, *({"outer": outer, "inner": inner}[each] for each in [also] if each)]

        # Stopped first, so that none of them acts before all are dead.
        for each in victims:
            os.kill(each, signal.SIGSTOP)
        for each in victims:
            # The outer process may have killed the inner one by now.
            kernel.send_signal(each, signal.SIGKILL)

        assert it.have_ended(*pids, outer, inner)
        assert within(2, lambda: not (tmp_path / "private").exists())


@LINUX_ONLY
@pytest.mark.parametrize("victim", ["outer", "inner"])
def test_when_one_process_of_the_guard_is_killed_the_other_ends_the_tree_and_reports_it(
    tmp_path: Path, victim: str
) -> None:
    with guarded(tmp_path) as it:
        os.write(it.command, b"g")
        pids = it.noted("cli"), it.noted("tool")
        inner = inner_of(it.pid)

        os.kill(it.pid if victim == "outer" else inner, signal.SIGKILL)

        # The reports end with the last process that could write one: not before the tree.
        assert it.rest().endswith("exited -9\n")
        assert not any(map(is_alive, pids))
        assert not (tmp_path / "private").exists()
        assert it.have_ended(it.pid, inner)


@LINUX_ONLY
@pytest.mark.parametrize("user", ["", "65534 65534"])
def test_when_both_processes_of_the_guard_are_killed_the_kernel_ends_the_cli(
    tmp_path: Path, user: str
) -> None:
    if user and os.geteuid():
        pytest.skip("only root may become another user")
    with guarded(tmp_path, "/bin/sleep", "60", user=user) as it:
        os.write(it.command, b"g")
        cli = int(it.report("started"))
        victims = [it.pid, inner_of(it.pid)]

        for each in victims:
            os.kill(each, signal.SIGSTOP)
        for each in victims:
            kernel.send_signal(each, signal.SIGKILL)

        assert "exited" not in it.rest()
        assert it.have_ended(cli)


WITHOUT_PRCTL = "import sys; sys.modules.update(_ctypes=None, ctypes=None)\n"
"""As on a system that has no `prctl`: no parent-death signal and no subreaper."""
DIES_AT_ONCE = """
import os, time
real = os.killpg
def killpg(group, number):
    real(group, number)
    time.sleep(0.1)
os.killpg = killpg
"""
"""Makes sure that a killed group is gone, and its orphans elsewhere, before the guard goes on."""


@pytest.mark.parametrize("way", ["group", "session", "exits"])
def test_without_a_subreaper_the_guard_is_one_process_and_finds_the_tree_by_its_groups(
    tmp_path: Path, way: str
) -> None:
    """A tool of a CLI that has exited is no longer below the guard, but still in its group."""
    with guarded(tmp_path, before=WITHOUT_PRCTL + DIES_AT_ONCE, way=way) as it:
        os.write(it.command, b"g")
        cli, tool = int(it.report("started")), it.noted("tool")
        if way != "exits":
            assert inner_of(it.pid) == cli
            os.write(it.command, b"k")

        assert it.report("exited") == ("0" if way == "exits" else "-9")
        assert it.have_ended(cli, tool)


NO_FORK = """
import errno, os
allowed = {allowed}
real = os.fork
def fork():
    global allowed
    if not allowed: raise BlockingIOError(errno.EAGAIN, "no more processes")
    allowed -= 1
    return real()
os.fork = fork
"""


@pytest.mark.parametrize("allowed", [0, 1], ids=["the guard", "the CLI"])
def test_a_guard_that_cannot_fork_reports_why_and_ends_at_once(
    tmp_path: Path, allowed: int
) -> None:
    with guarded(tmp_path, before=NO_FORK.format(allowed=allowed)) as it:
        # A guard that cannot become two programs ends before it reads a command.
        with contextlib.suppress(BrokenPipeError):
            os.write(it.command, b"g")

        assert it.rest().splitlines()[-2:] == [f"failed fork {errno.EAGAIN}", "exited -9"]

        assert it.have_ended(it.pid)
        assert not (tmp_path / "private").exists()


def test_a_deadline_ends_the_tree_while_its_host_does_nothing(tmp_path: Path) -> None:
    with guarded(tmp_path) as found:
        # The second command comes in two parts, and replaces the first one.
        os.write(found.command, b"gd000000001"[:1] + b"d999999999" + b"d0000")
        cli, tool = found.noted("cli"), found.noted("tool")
        os.write(found.command, b"00050")

        assert found.have_ended(cli, tool)
        assert found.report("exited") == "-9"
