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
from steersman.transports import kernel

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
    """Return whether a process runs. Without subreapers, init waits for orphans when it likes."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return not Path("/proc").exists() and bool(_state_of(pid).strip("Z\n"))


def _state_of(pid: int) -> str:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return shown.stdout.decode()[:1]


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


def test_a_forked_copy_that_keeps_the_pipes_does_not_keep_the_tree_alive(mark: Path) -> None:
    """A fork in C keeps the control pipe open, so the end of the commands does not show."""
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


# --- the guard server -----------------------------------------------------------------------------

SERVER = """
from pathlib import Path
def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def server_of(cli):
    pid = parent(parent(cli))
    return pid if b"guard_server.py" in Path(f"/proc/{pid}/cmdline").read_bytes() else 0

async def run(code, transport=None):
    receiver = Collector()
    argv = ("/bin/sh", "-c", code + "; cat")
    channel = await (transport or SubprocessTransport()).open(
        Launch(argv, env={"PATH": os.environ["PATH"]}), receiver)
    async with asyncio.timeout(10):
        while not receiver.out.endswith(b"\\n"): await asyncio.sleep(0.005)
    return channel, receiver

async def end(channel, receiver):
    channel.end_input()
    async with asyncio.timeout(10):
        while receiver.status is None: await asyncio.sleep(0.005)
    return receiver.status
"""

NEEDS_SERVER = pytest.mark.skipif(not kernel.can_watch(), reason="there are no guard servers here")
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")


def run_host(code: str, *arguments: str) -> list[str]:
    """Run a host that opens CLIs. Return the lines that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(Path(steersman.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + SERVER + code, *arguments],
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return done.stdout.decode().splitlines()


@NEEDS_SERVER
@NEEDS_ROOT
@pytest.mark.parametrize("which", ["group", "user"])
def test_a_host_that_has_given_up_root_gets_nothing_from_its_old_server(which: str) -> None:
    before, *others, end = run_host(
        """
from steersman.errors import LaunchError
which = sys.argv[1]
async def main():
    first, one = await run("id -g" if which == "group" else "id -u")
    print(one.out.split()[0].decode())
    old = server_of(first.pid)
    (os.setresgid if which == "group" else os.setresuid)(65534, 65534, 65534)
    for _ in range(2):
        try:
            channel, receiver = await run("id -g" if which == "group" else "id -u")
        except LaunchError as error:
            # This user may not be allowed to run the interpreter.
            print("refused")
        else:
            print(receiver.out.split()[0].decode(), server_of(channel.pid) in (0, old))
            await end(channel, receiver)
    print(await end(first, one))
asyncio.run(main())
""",
        which,
    )
    # The first guard is a program of its own, the second one of a new server.
    new = ["65534 True", "65534 False"]
    assert (before, end) == ("0", "0")
    assert others == new if which == "group" else others in (new, ["refused"] * 2)


@NEEDS_SERVER
@NEEDS_ROOT
def test_a_host_that_has_given_up_capabilities_gets_nothing_from_its_old_server() -> None:
    lines = run_host("""
import ctypes
PR_CAPBSET_DROP, CAP_SYS_TIME = 24, 25
async def main():
    look = "sed -n 's/^CapBnd:.//p' /proc/self/status"
    first, one = await run(look)
    old = server_of(first.pid)
    # Only for this thread, which is not the one that starts servers.
    assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0) == 0
    second, two = await run(look)
    third, three = await run(look)
    print(old != 0, old in (server_of(second.pid), server_of(third.pid)))
    print([await end(*each) for each in [(first, one), (second, two), (third, three)]])
asyncio.run(main())
""")
    assert lines == ["True False", "[0, 0, 0]"]


@NEEDS_SERVER
@NEEDS_ROOT
def test_a_host_in_another_root_gets_nothing_from_its_old_server(tmp_path: Path) -> None:
    """There is no Python in the other root, so nothing at all may start."""
    lines = run_host(
        """
from steersman.errors import SteersmanError
async def main():
    first, one = await run("true; echo")
    os.chroot(sys.argv[1])
    try:
        await run("echo")
    except SteersmanError as error:
        print(type(error).__name__)
    print(await end(first, one))
asyncio.run(main())
""",
        str(tmp_path),
    )
    assert lines == ["LaunchError", "0"]


@NEEDS_SERVER
@NEEDS_ROOT
@pytest.mark.parametrize("sender", ["itself", "copy", "other user"])
def test_a_server_takes_orders_from_its_host_alone(tmp_path: Path, sender: str) -> None:
    """A copy of the host that was forked in C has the socket, and may have given up rights."""
    lines = run_host(
        """
import array, socket
from steersman.transports import guard_server
from steersman.transports.guards import GuardServer

server = GuardServer(sys.executable)
mark, sender = sys.argv[1:]
control, command = os.pipe()
reports, status = os.pipe()
null = os.open("/dev/null", os.O_RDWR)
places = [os.open("/", os.O_PATH), os.open("/", os.O_PATH)]
ends = array.array("i", [null, null, null, control, status, *places])
order = "\\0".join(["", "", "", "2", "/bin/touch", mark, ""]).encode()
orders = socket.socket(fileno=os.dup(server._orders.number))

def send():
    os.write(command, b"g")
    orders.sendmsg([order], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])

if sender == "itself":
    send()
elif not (pid := os.fork()):
    if sender == "other user":
        os.setresuid(65534, 65534, 65534)
    send()
    os._exit(0)
else:
    os.waitpid(pid, 0)
for each in (control, status):
    os.close(each)
told = b""
while part := os.read(reports, 100): told += part
print(told.split()[-2:], os.path.exists(mark))
""",
        str(tmp_path / "mark"),
        sender,
    )
    assert lines == [f"{[b'exited', b'0']} True" if sender == "itself" else "[] False"]


@NEEDS_SERVER
def test_a_frozen_program_has_its_guards_from_the_interpreter_that_it_names() -> None:
    lines = run_host("""
python, sys.executable, sys.frozen = sys.executable, "/bin/false", True
async def main():
    channel, receiver = await run("echo", SubprocessTransport(python=python))
    exe = os.readlink(f"/proc/{server_of(channel.pid)}/exe")
    print(os.path.samefile(exe, python), await end(channel, receiver))
asyncio.run(main())
""")
    assert lines == ["True 0"]


@NEEDS_SERVER
def test_the_time_of_clis_is_the_hosts_when_its_server_has_ended() -> None:
    lines = run_host("""
import resource
BUSY = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo'
def used():
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times.ru_utime + times.ru_stime
async def main():
    channel, receiver = await run(BUSY)
    stat = Path(f"/proc/{channel.pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    await end(channel, receiver)
    return own
own = asyncio.run(main())
from steersman.transports.supervisor import Supervisor
before = used()
Supervisor.shut_down()
print(own > 0, before < own <= used())
""")
    assert lines == ["True True"]


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork"])
def test_the_children_of_multiprocessing_have_guards_of_their_own(tmp_path: Path, way: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        PRELUDE
        + """
import multiprocessing, warnings
warnings.filterwarnings("ignore", message=".*multi-threaded.*")

async def echo():
    receiver = Collector()
    channel = await SubprocessTransport().open(Launch(("/bin/cat",)), receiver)
    channel.write(b"hi")
    channel.end_input()
    async with asyncio.timeout(20):
        while receiver.status is None: await asyncio.sleep(0.005)
    return receiver.status, receiver.out

def work(number):
    # A forked copy of a program whose event loop runs.
    asyncio._set_running_loop(None)
    assert asyncio.run(echo()) == (0, b"hi")

async def main():
    receiver = Collector()
    channel = await SubprocessTransport().open(Launch(("/bin/cat",)), receiver)
    context = multiprocessing.get_context(sys.argv[1])
    processes = [context.Process(target=work, args=(each,)) for each in range(2)]
    for each in processes: each.start()
    for each in processes: each.join(40)
    print([each.exitcode for each in processes], alive(channel.pid), flush=True)
    print(await echo())
    channel.kill()

if __name__ == "__main__":
    asyncio.run(main())
"""
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(steersman.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(program), way],
        env=environment,
        capture_output=True,
        check=False,
        timeout=90,
    )

    assert (done.stderr.decode(), done.stdout.decode().splitlines()) == (
        "",
        ["[0, 0] True", "(0, b'hi')"],
    )


@NEEDS_SERVER
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="`_xxsubinterpreters` is of Python 3.11")
def test_two_interpreters_in_one_process_have_a_server_each() -> None:
    lines = run_host(
        """
import _xxsubinterpreters as interpreters
inner = interpreters.create(isolated=False)
PROGRAM = '''
async def main():
    channel, receiver = await run("echo")
    print(server_of(channel.pid), flush=True)
    print(await end(channel, receiver), flush=True)
asyncio.run(main())
'''
loop = asyncio.new_event_loop()
channel, receiver = loop.run_until_complete(run("echo"))
print(server_of(channel.pid), flush=True)
path = f"import sys; sys.path[:] = {sys.path}"
interpreters.run_string(inner, path + sys.argv[1] + PROGRAM)
print(loop.run_until_complete(end(channel, receiver)), flush=True)
# An interpreter cannot be destroyed while it has a thread.
os._exit(0)
""",
        # Only the main interpreter may set handlers of signals.
        PRELUDE.replace("signal.signal", "#") + SERVER,
    )
    own, other, *statuses = lines
    assert "0" not in (own, other)
    assert own != other
    assert statuses == ["0", "0"]
