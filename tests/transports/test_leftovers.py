"""What killed hosts leave behind is removed by the next one, and nothing else is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.ports import FileArgument, Launch
from steersman.testing.contracts.transports import RecordingReceiver
from steersman.transports import kernel
from steersman.transports.leftovers import (
    OLD,
    PREFIX,
    TREE,
    end_orphans,
    end_tree,
    new_private_path,
    new_tree_name,
    sweep,
)
from steersman.transports.subprocess import SubprocessTransport

pytestmark = pytest.mark.skipif(not kernel.IS_LINUX, reason="needs /proc")


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_behind(place: Path, pid: int | None = None, **parts: str) -> Path:
    """Make a private directory as a host makes it, with another pid, start time or machine."""
    names = ("pid", "started", "machine", "rest")
    mine = Path(new_private_path("")).name.removeprefix(PREFIX).split("-")
    known = dict(zip(names, mine, strict=True))
    known |= {"pid": str(ended_pid() if pid is None else pid)} | parts
    path = place / (PREFIX + "-".join(known[name] for name in names))
    path.mkdir(0o700)
    (path / "servers").write_text("a secret")
    return path


def test_the_files_of_a_host_that_no_longer_runs_are_removed(tmp_path: Path) -> None:
    left = left_behind(tmp_path)

    assert sweep(str(tmp_path)) == 1
    assert not left.exists()


def test_the_files_of_a_host_whose_pid_was_used_again_are_removed(tmp_path: Path) -> None:
    left = left_behind(tmp_path, pid=os.getpid(), started="1")

    sweep(str(tmp_path))

    assert not left.exists()


def test_the_files_of_a_running_host_stay(tmp_path: Path) -> None:
    mine = left_behind(tmp_path, pid=os.getpid())

    assert sweep(str(tmp_path)) == 0
    assert mine.exists()


def test_the_files_of_another_machine_stay_for_a_day(tmp_path: Path) -> None:
    new, old = (left_behind(tmp_path, machine="0" * 15 + each) for each in "12")
    long_ago = old.stat().st_mtime - OLD - 60
    os.utime(old, (long_ago, long_ago))

    sweep(str(tmp_path))

    assert (new.exists(), old.exists()) == (True, False)


def test_a_directory_that_is_not_surely_ours_stays(tmp_path: Path) -> None:
    wider, target = left_behind(tmp_path), left_behind(tmp_path)
    wider.chmod(0o755)
    elsewhere = tmp_path / "elsewhere"
    target.rename(elsewhere)
    target.symlink_to(elsewhere)
    other = tmp_path / "steersman-0123456789"
    other.mkdir(0o700)

    assert sweep(str(tmp_path)) == 0
    assert (elsewhere / "servers").exists()
    assert all(each.exists() for each in (wider, target, other))


def test_a_link_inside_is_removed_and_not_followed(tmp_path: Path) -> None:
    left = left_behind(tmp_path)
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (left / "link").symlink_to(kept)

    sweep(str(tmp_path))

    assert not left.exists()
    assert kept.read_text() == "mine"


HOST = """
import asyncio, sys
from steersman.ports import FileArgument, Launch
from steersman.testing.contracts.transports import RecordingReceiver
from steersman.transports.subprocess import SubprocessTransport

async def main():
    argv = ("/bin/sh", "-c", "setsid sleep 600 & echo $!; sleep 600")
    receiver = RecordingReceiver()
    launch = Launch(argv, env={"PATH": "/usr/bin:/bin"}, files={"f": b"a secret"})
    channel = await SubprocessTransport(files_in=sys.argv[1]).open(launch, receiver)
    print(channel.pid, await receiver.line(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def parent_of(pid: int) -> int:
    row = kernel.row_of(pid)
    assert row is not None
    return row[1]


def leave_behind(place: Path) -> tuple[Path, int]:
    """Run a host with a CLI, kill host and guard, and return what is left: a directory, a tool."""
    command = [sys.executable, "-c", HOST, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        cli, tool = map(int, host.stdout.readline().split())
        inner = parent_of(cli)
        outer = parent_of(inner)
        # Stopped first, so that none of them cleans up after the others.
        for each in (inner, outer, host.pid):
            os.kill(each, signal.SIGSTOP)
        for each in (inner, outer, host.pid):
            kernel.send_signal(each, signal.SIGKILL)
    (left,) = place.iterdir()
    return left, tool


def is_running(pid: int) -> bool:
    row = kernel.row_of(pid)
    return row is not None and row[3] not in "ZX"


@pytest.mark.process
def test_the_next_start_ends_and_removes_what_a_killed_host_and_its_killed_guard_left(
    tmp_path: Path,
) -> None:
    left, tool = leave_behind(tmp_path)
    assert (left / "f").read_text() == "a secret"
    assert is_running(tool)
    code = "import tests.transports.test_leftovers as it, asyncio, pathlib, sys\n"
    code += "print(asyncio.run(it.run_once(pathlib.Path(sys.argv[1]))))"

    # Another process: this one may have looked for leftovers before.
    output = subprocess.check_output(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
    )

    assert output == b"b'hello'\n"
    assert list(tmp_path.iterdir()) == []
    assert not is_running(tool)


def sleeper(tree: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], env={TREE: tree, "PATH": os.environ["PATH"]})


@pytest.mark.process
def test_only_processes_of_trees_whose_host_has_ended_are_orphans() -> None:
    pid, started, machine, rest = new_tree_name().split("-")
    ended = str(ended_pid())
    names = {
        "orphan": f"{ended}-{started}-{machine}-{rest}",
        "pid used again": f"{pid}-1-{machine}-{rest}",
        "of this host": f"{pid}-{started}-{machine}-{rest}",
        "of another machine": f"{ended}-{started}-{'0' * 15}1-{rest}",
        "not a name": f"{ended}-{started}-{machine}",
    }
    running = {why: sleeper(name) for why, name in names.items()}
    try:
        end_orphans()

        for why in ("orphan", "pid used again"):
            assert running[why].wait(5) == -signal.SIGKILL
        assert [why for why, each in running.items() if each.poll() is None] == [
            "of this host",
            "of another machine",
            "not a name",
        ]
    finally:
        for each in running.values():
            each.kill()
            each.wait()


@pytest.mark.process
def test_a_process_does_not_end_the_tree_that_it_is_part_of() -> None:
    # Of a machine of its own: any other host on this one would end orphans of this one.
    _, started, _, rest = new_tree_name().split("-")
    machine = rest[:16]
    tree, others = (f"{ended_pid()}-{started}-{machine}-{each}" for each in (rest, rest[::-1]))
    code = "import sys; from steersman.transports.leftovers import end_orphans;"
    code += "print(end_orphans(sys.argv[1]))"
    with sleeper(tree) as mine, sleeper(others) as orphan:
        try:
            ended = subprocess.run(
                [sys.executable, "-c", code, machine],
                env={TREE: tree, "PYTHONPATH": os.pathsep.join(sys.path)},
                check=True,
                timeout=60,
                capture_output=True,
            )

            assert mine.poll() is None
            assert orphan.wait(5) == -signal.SIGKILL
            assert ended.stdout == b"1\n"
        finally:
            mine.kill()
            orphan.kill()


@pytest.mark.process
def test_a_tree_is_ended_by_its_name_and_no_other() -> None:
    mine, others = new_tree_name(), new_tree_name()
    with sleeper(mine) as first, sleeper(others) as second:
        assert end_tree(mine) == 1

        assert first.wait(5) == -signal.SIGKILL
        assert second.poll() is None
        second.kill()


async def run_once(place: Path) -> bytes:
    receiver = RecordingReceiver()
    launch = Launch(("cat", FileArgument("", "f")), files={"f": b"hello"})
    async with asyncio.timeout(20):
        channel = await SubprocessTransport(files_in=str(place)).open(launch, receiver)
        channel.end_input()
        await receiver.exit()
    return bytes(receiver.out)
