"""What killed hosts leave behind is removed by the next one, and nothing else is."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.ports import FileArgument, Launch
from steersman.testing.contracts.transports import RecordingReceiver
from steersman.transports.leftovers import OLD, PREFIX, new_private_path, sweep
from steersman.transports.subprocess import SubprocessTransport

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


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
    launch = Launch(("sleep", "600"), files={"f": b"a secret"})
    channel = await SubprocessTransport(files_in=sys.argv[1]).open(launch, RecordingReceiver())
    print(channel.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def parent_of(pid: int) -> int:
    return int(re.sub(r".*\)", "", Path(f"/proc/{pid}/stat").read_text()).split()[1])


def leave_behind(place: Path) -> Path:
    """Run a host with a CLI, kill host and guard together, and return what they leave."""
    command = [sys.executable, "-c", HOST, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        cli = int(host.stdout.readline())
        guard = parent_of(cli)
        # Stopped first, so that it does not clean up after its host.
        os.kill(guard, signal.SIGSTOP)
        host.kill()
    os.kill(guard, signal.SIGKILL)
    os.kill(cli, signal.SIGKILL)
    (left,) = place.iterdir()
    return left


@pytest.mark.process
def test_the_next_start_removes_what_a_killed_host_and_its_killed_guard_left(
    tmp_path: Path,
) -> None:
    left = leave_behind(tmp_path)
    assert (left / "f").read_text() == "a secret"

    assert asyncio.run(run_once(tmp_path)) == b"hello"

    assert list(tmp_path.iterdir()) == []


async def run_once(place: Path) -> bytes:
    receiver = RecordingReceiver()
    launch = Launch(("cat", FileArgument("", "f")), files={"f": b"hello"})
    async with asyncio.timeout(20):
        channel = await SubprocessTransport(files_in=str(place)).open(launch, receiver)
        channel.end_input()
        await receiver.exit()
    return bytes(receiver.out)
