"""The CLI is ended when its host misbehaves. Each host here is a separate process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import steersman

PRELUDE = """
import asyncio, os, signal, sys, threading, time
from steersman.ports import FileArgument, Launch
from steersman.transports.subprocess import SubprocessTransport

# A test run in the background, or under nohup, ignores signals, and its children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

class Collector:
    def __init__(self):
        self.out = b""
        self.status = None
    def data_received(self, data): self.out += data
    def stderr_received(self, data): pass
    def exited(self, status): self.status = status

TOOL = '''
import os, sys, time
directory, mark = sys.argv[1:]
if not os.fork():
    os.setsid()
    print(os.getpid(), flush=True)
    time.sleep(2)
    open(mark, "w").close()
    os._exit(0)
print(os.getpid(), directory, flush=True)
time.sleep(60)
'''

def launch(mark):
    argv = (sys.executable, "-I", "-S", "-c", TOOL, FileArgument("", "f"), mark)
    return Launch(argv, env={"PATH": os.environ["PATH"]}, files={"f": b"secret"})

async def start(mark):
    receiver = Collector()
    channel = await SubprocessTransport().open(launch(mark), receiver)
    async with asyncio.timeout(10):
        while receiver.out.count(b"\\n") < 2: await asyncio.sleep(0.005)
    parts = receiver.out.split()
    path = next(part for part in parts if b"/" in part)
    print(*(int(part) for part in parts if part.isdigit()), path.decode(), flush=True)
    return channel, receiver

def alive(pid):
    try: os.kill(pid, 0)
    except ProcessLookupError: return False
    return True

async def ended(pid):
    async with asyncio.timeout(10):
        while alive(pid): await asyncio.sleep(0.005)
"""


@dataclass
class Host:
    process: subprocess.Popen[bytes]
    pids: tuple[int, ...]
    """The CLI and its tool, which has its own session."""
    directory: Path
    mark: Path
    """A file that the tool creates two seconds after its start."""

    def end(self) -> bytes:
        """Wait for the exit of the host. Return its stderr."""
        _, errors = self.process.communicate(timeout=20)
        return errors

    def has_all_ended(self) -> bool:
        return not any(map(is_alive, self.pids)) and not self.directory.exists()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def within(seconds: float, is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.005)
    return is_true()


@contextlib.contextmanager
def host(code: str, mark: Path) -> Iterator[Host]:
    environment = {**os.environ, "PYTHONPATH": str(Path(steersman.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + code, str(mark)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            *pids, path = process.stdout.readline().split()
            yield Host(process, tuple(map(int, pids)), Path(os.fsdecode(path)).parent, mark)
        finally:
            process.kill()


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


WAITING = """
async def main():
    channel, receiver = await start(sys.argv[1])
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_when_the_host_is_killed_the_whole_tree_ends_at_once(mark: Path) -> None:
    with host(WAITING, mark) as it:
        assert all(map(is_alive, it.pids))
        assert it.directory.exists()
        started = time.monotonic()

        it.process.kill()

        assert within(1, it.has_all_ended)
        # Wait until the tool would have created the file.
        within(2.5 - (time.monotonic() - started), mark.exists)
        assert not mark.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signal")
def test_a_forked_copy_that_keeps_the_pipes_does_not_keep_the_tree_alive(mark: Path) -> None:
    """A fork in C keeps the control pipe open, so only the parent-death signal ends the tree."""
    code = """
import ctypes
async def main():
    channel, receiver = await start(sys.argv[1])
    if ctypes.PyDLL(None).fork() == 0:
        ctypes.PyDLL(None).sleep(5)
        os._exit(0)
    print("forked", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with host(code, mark) as it:
        assert it.process.stdout is not None
        assert it.process.stdout.readline() == b"forked\n"

        it.process.kill()

        assert within(1, it.has_all_ended)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_host_that_is_signalled_leaves_nothing(mark: Path, number: int) -> None:
    with host(WAITING, mark) as it:
        it.process.send_signal(number)

        assert within(5, it.has_all_ended)


def test_a_loop_that_closes_with_an_open_channel_ends_the_tree_silently(
    mark: Path,
) -> None:
    code = """
async def main():
    kept.extend(await start(sys.argv[1]))
kept = []
asyncio.run(main())
pid = kept[0].pid
asyncio.run(ended(pid))
kept[0].write(b"x" * 1_000_000)
kept[0].suspend()
kept[0].close(1)
kept[0].kill()
kept.clear()
import gc
gc.collect()
"""
    with host(code, mark) as it:
        errors = it.end()

        assert (it.process.returncode, errors) == (0, b"")
        assert it.has_all_ended()


def test_at_exit_everything_is_killed(mark: Path) -> None:
    code = """
loop = asyncio.new_event_loop()
kept = loop.run_until_complete(start(sys.argv[1]))
import atexit
atexit.register(loop.close)
"""
    with host(code, mark) as it:
        errors = it.end()

        assert (it.process.returncode, errors) == (0, b"")
        assert it.has_all_ended()


def test_a_channel_dropped_while_its_loop_does_not_run_is_killed(mark: Path) -> None:
    code = """
loop = asyncio.new_event_loop()
channel, receiver = loop.run_until_complete(start(sys.argv[1]))
pid = channel.pid
del channel
deadline = time.monotonic() + 10
while alive(pid) and time.monotonic() < deadline: time.sleep(0.005)
assert not alive(pid)
assert receiver.status is None
async def end():
    async with asyncio.timeout(5):
        while receiver.status is None: await asyncio.sleep(0.005)
loop.run_until_complete(end())
assert receiver.status == -9
loop.close()
"""
    with host(code, mark) as it:
        assert it.end() == b""
        assert it.has_all_ended()


def test_a_forked_host_keeps_nothing_and_can_start_its_own(mark: Path) -> None:
    code = """
async def echo():
    receiver = Collector()
    channel = await SubprocessTransport().open(Launch(("/bin/cat",)), receiver)
    channel.write(b"hi")
    channel.close(5)
    async with asyncio.timeout(10):
        while receiver.status is None: await asyncio.sleep(0.005)
    assert (receiver.status, receiver.out) == (0, b"hi")

async def main():
    channel, receiver = await start(sys.argv[1])
    reader = Collector()
    cat = await SubprocessTransport().open(Launch(("/bin/cat",)), reader)
    pid = os.fork()
    if not pid:
        asyncio._set_running_loop(None)
        channel.kill()
        cat.write(b"from the copy")
        cat.close(0)
        del channel, cat
        asyncio.run(echo())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    await echo()
    assert alive(channel.pid) and alive(cat.pid)

    # A forked copy that keeps running does not keep the input open.
    pid = os.fork()
    if not pid:
        time.sleep(60)
    cat.end_input()
    async with asyncio.timeout(10):
        while reader.status is None: await asyncio.sleep(0.005)
    assert (reader.status, reader.out) == (0, b"")
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    channel.kill()
    async with asyncio.timeout(10):
        while receiver.status is None: await asyncio.sleep(0.005)

import warnings
warnings.filterwarnings("ignore", message=".*multi-threaded.*")
asyncio.run(main())
"""
    with host(code, mark) as it:
        errors = it.end()

        assert (it.process.returncode, errors) == (0, b"")
        assert it.has_all_ended()


def test_forking_while_channels_open_and_close_does_no_harm(mark: Path) -> None:
    code = """
import warnings
warnings.filterwarnings("ignore", message=".*multi-threaded.*")
async def echo():
    receiver = Collector()
    channel = await SubprocessTransport().open(Launch(("/bin/cat",)), receiver)
    channel.write(b"hi")
    channel.close(20)
    async with asyncio.timeout(20):
        while receiver.status is None: await asyncio.sleep(0.001)
    assert (receiver.status, receiver.out) == (0, b"hi")

def fork(stop):
    while not stop.is_set():
        pid = os.fork()
        if not pid: os._exit(0)
        os.waitpid(pid, 0)

async def main():
    channel, receiver = await start(sys.argv[1])
    stop = threading.Event()
    thread = threading.Thread(target=fork, args=(stop,))
    thread.start()
    try:
        for _ in range(5): await asyncio.gather(*(echo() for _ in range(4)))
    finally:
        stop.set()
        thread.join()
    channel.kill()
asyncio.run(main())
"""
    with host(code, mark) as it:
        errors = it.end()

        assert (it.process.returncode, errors) == (0, b"")
        assert it.has_all_ended()


def test_a_host_that_reaps_every_child_itself_is_no_problem(mark: Path) -> None:
    code = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
async def main():
    channel, receiver = await start(sys.argv[1])
    channel.close(0.1)
    async with asyncio.timeout(10):
        while receiver.status is None: await asyncio.sleep(0.005)
    assert receiver.status == -15, receiver.status
asyncio.run(main())
"""
    with host(code, mark) as it:
        assert it.end() == b""
        assert it.has_all_ended()


def test_a_host_without_standard_streams_is_no_problem(mark: Path) -> None:
    code = """
async def main():
    kept = await start(sys.argv[1])
    for number in (0, 1): os.close(number)
    receiver = Collector()
    channel = await SubprocessTransport().open(Launch(("/bin/cat",)), receiver)
    channel.write(b"hi")
    channel.close(5)
    async with asyncio.timeout(10):
        while receiver.status is None: await asyncio.sleep(0.005)
    assert (receiver.status, receiver.out) == (0, b"hi")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 1)
asyncio.run(main())
"""
    with host(code, mark) as it:
        assert it.end() == b""
        assert it.has_all_ended()


def test_a_blocked_loop_does_not_stop_the_stop_sequence(mark: Path) -> None:
    code = """
async def main():
    channel, receiver = await start(sys.argv[1])
    channel.close(0.1)
    deadline = time.monotonic() + 10
    while alive(channel.pid) and time.monotonic() < deadline: time.sleep(0.005)
    assert not alive(channel.pid)
asyncio.run(main())
"""
    with host(code, mark) as it:
        assert it.end() == b""
        assert it.has_all_ended()


def test_a_host_that_may_start_no_programs_is_told_so_at_once() -> None:
    """An audit hook may refuse with any exception, and in any thread."""
    code = """
from steersman.errors import LaunchError
def refuse(event, _):
    if event == "os.posix_spawn": raise RuntimeError("no programs here")
sys.addaudithook(refuse)
async def main():
    try:
        async with asyncio.timeout(5):
            await SubprocessTransport().open(Launch(("true",)), Collector())
    except LaunchError as error:
        print(error)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(steersman.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=30,
        check=False,
    )

    assert "no programs here" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")
